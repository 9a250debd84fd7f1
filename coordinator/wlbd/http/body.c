#include "coordinator/wlbd/http/body.h"

#include <string.h>

#include "coordinator/wlbd/http/body_size.h"
#include "coordinator/wlbd/http/fields.h"
#include "coordinator/wlbd/http/reply.h"
#include "coordinator/wlbd/http/request.h"
#include "coordinator/wlbd/wlbd.h"

enum {
	SHORT_BYTES = 16 << 10, /* a body up to this size is read at once, and bounded by the number of connections */
	VALUES_MAX = 400000,    /* ranks of 100,000 processes in one record; freeing them takes 30 ms */
	VALUE_BYTES = 96,       /* of jansson: a value, its key, its place in the object */
	USUAL_BYTES = 56,       /* of a value in a report */
};

int wlbd_body_hold(struct wlbd_request *request, size_t bytes)
{
	if (bytes <= SHORT_BYTES)
		return 0;
	switch (wlbd_budget_take(request->wlbd->budget, request->uid, bytes)) {
	case WLBD_BUDGET_TAKEN:
		request->in_flight_bytes += bytes;
		return 0;
	case WLBD_BUDGET_USER_FULL:
		wlbd_request_fail(request, 503,
		                  "uid %u has too many long requests under way; try again when some are done",
		                  request->uid);
		return -1;
	case WLBD_BUDGET_FULL:
		wlbd_request_fail(request, 503, "too many long requests are under way; try again");
		return -1;
	}
	return -1;
}

static void set_refusal(struct wlbd_request *request, const char *why)
{
	request->refusal_status = 503;
	wlb_fail(&request->refusal, "%s; try again", why);
}

static void discard(struct wlbd_task *task)
{
	struct wlbd_request *request = (struct wlbd_request *)task;
	set_refusal(request, "too many long requests wait");
	wlbd_request_fail(request, request->refusal_status, "%s", request->refusal.message);
}

static void do_task(struct wlbd_request *request, void (*run)(struct wlbd_task *task),
                    void (*done)(struct wlbd_task *task))
{
	request->task = (struct wlbd_task){.run = run, .done = done, .discard = discard};
	if (request->text_length > SHORT_BYTES) {
		wlbd_thread_pool_submit(request->wlbd->bodies, &request->task);
	} else {
		run(&request->task);
		done(&request->task);
	}
}

/* Returns whether the task refused the body, or wlbd is stopping; the request is answered then. */
static bool was_refused(struct wlbd_request *request)
{
	if (request->refusal_status == 0 && request->wlbd->stopping)
		set_refusal(request, "wlbd is stopping");
	if (request->refusal_status == 0)
		return false;
	wlbd_request_fail(request, request->refusal_status, "%s", request->refusal.message);
	return true;
}

/* ---- 2: parse -------------------------------------------------------------------------------------- */

static void run_parse(struct wlbd_task *task)
{
	struct wlbd_request *request = (struct wlbd_request *)task;
	if (request->route->is_read_only)
		wlbd_body_memory_begin(&request->memory, request->values * USUAL_BYTES);
	request->body = wlbd_body_parse(request->text, request->text_length, &request->refusal);
	wlbd_body_memory_end();
	if (request->body == NULL)
		request->refusal_status = 400;
}

static void done_parse(struct wlbd_task *task)
{
	struct wlbd_request *request = (struct wlbd_request *)task;
	if (!was_refused(request))
		request->route->handle(request);
}

/* ---- 1: compare with the credential, count the values ------------------------------------------------ */

static void run_check(struct wlbd_task *task)
{
	struct wlbd_request *request = (struct wlbd_request *)task;
	char digest[WLB_DIGEST_SIZE];
	wlb_digest_request(request->method, request->uri, request->text, request->text_length, digest);
	request->values = wlbd_body_size(request->text, request->text_length).values;
	if (strcmp(digest, request->claim) != 0) {
		request->refusal_status = 401;
		wlb_fail(&request->refusal,
		         "credential: was made for another request; its payload must be the SHA-256 of "
		         "METHOD, path with query, and body");
	} else if (request->values > VALUES_MAX) {
		request->refusal_status = 413;
		wlb_fail(&request->refusal, "body: %zu values; at most %d are accepted in one request", request->values,
		         VALUES_MAX);
	}
}

/* A 401 has no proof: the sender did not make the credential. */
static void done_check(struct wlbd_task *task)
{
	struct wlbd_request *request = (struct wlbd_request *)task;
	request->is_plain = request->refusal_status == 401;
	if (was_refused(request))
		return;
	if (request->text == NULL)
		request->route->handle(request);
	else if (wlbd_body_hold(request, request->values * VALUE_BYTES) == 0)
		do_task(request, run_parse, done_parse);
}

void wlbd_body_handle(struct wlbd_request *request)
{
	do_task(request, run_check, done_check);
}
