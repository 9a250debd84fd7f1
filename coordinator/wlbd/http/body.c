#include "coordinator/wlbd/http/body.h"

#include <string.h>

#include "coordinator/wlbd/http/body_size.h"
#include "coordinator/wlbd/http/call.h"
#include "coordinator/wlbd/http/fields.h"
#include "coordinator/wlbd/http/reply.h"
#include "coordinator/wlbd/wlbd.h"

enum {
	SHORT_BYTES = 16 << 10, /* a body up to this size is read at once, and bounded by the number of connections */
	VALUES_MAX = 400000,    /* ranks of 100,000 processes in one record; freeing them takes 30 ms */
	VALUE_BYTES = 96,       /* of jansson: a value, its key, its place in the object */
	USUAL_BYTES = 56,       /* of a value in a report */
};

int wlbd_body_hold(struct wlbd_call *call, size_t bytes)
{
	if (bytes <= SHORT_BYTES)
		return 0;
	switch (wlbd_budget_take(call->wlbd->budget, call->uid, bytes)) {
	case WLBD_BUDGET_TAKEN:
		call->in_flight_bytes += bytes;
		return 0;
	case WLBD_BUDGET_USER_FULL:
		wlbd_call_fail(call, 503, "uid %u has too many long requests under way; try again when some are done",
		               call->uid);
		return -1;
	case WLBD_BUDGET_FULL:
		wlbd_call_fail(call, 503, "too many long requests are under way; try again");
		return -1;
	}
	return -1;
}

static void set_refusal(struct wlbd_call *call, const char *why)
{
	call->refusal_status = 503;
	wlb_fail(&call->refusal, "%s; try again", why);
}

static void discard(struct wlbd_task *task)
{
	struct wlbd_call *call = (struct wlbd_call *)task;
	set_refusal(call, "too many long requests wait");
	wlbd_call_fail(call, call->refusal_status, "%s", call->refusal.message);
}

static void do_task(struct wlbd_call *call, void (*run)(struct wlbd_task *task), void (*done)(struct wlbd_task *task))
{
	call->task = (struct wlbd_task){.run = run, .done = done, .discard = discard};
	if (call->text_length > SHORT_BYTES) {
		wlbd_thread_pool_submit(call->wlbd->bodies, &call->task);
	} else {
		run(&call->task);
		done(&call->task);
	}
}

/* Returns whether the task refused the body, or wlbd is stopping; the call is answered then. */
static bool was_refused(struct wlbd_call *call)
{
	if (call->refusal_status == 0 && call->wlbd->stopping)
		set_refusal(call, "wlbd is stopping");
	if (call->refusal_status == 0)
		return false;
	wlbd_call_fail(call, call->refusal_status, "%s", call->refusal.message);
	return true;
}

/* ---- 2: parse -------------------------------------------------------------------------------------- */

static void run_parse(struct wlbd_task *task)
{
	struct wlbd_call *call = (struct wlbd_call *)task;
	if (call->route->is_read_only)
		wlbd_body_memory_begin(&call->memory, call->values * USUAL_BYTES);
	call->body = wlbd_body_parse(call->text, call->text_length, &call->refusal);
	wlbd_body_memory_end();
	if (call->body == NULL)
		call->refusal_status = 400;
}

static void done_parse(struct wlbd_task *task)
{
	struct wlbd_call *call = (struct wlbd_call *)task;
	if (!was_refused(call))
		call->route->handle(call);
}

/* ---- 1: compare with the credential, count the values ------------------------------------------------ */

static void run_check(struct wlbd_task *task)
{
	struct wlbd_call *call = (struct wlbd_call *)task;
	char digest[WLB_DIGEST_SIZE];
	wlb_digest_request(call->method, call->uri, call->text, call->text_length, digest);
	call->values = wlbd_body_size(call->text, call->text_length).values;
	if (strcmp(digest, call->claim) != 0) {
		call->refusal_status = 401;
		wlb_fail(&call->refusal, "credential: was made for another request; its payload must be the SHA-256 of "
		                         "METHOD, path with query, and body");
	} else if (call->values > VALUES_MAX) {
		call->refusal_status = 413;
		wlb_fail(&call->refusal, "body: %zu values; at most %d are accepted in one request", call->values,
		         VALUES_MAX);
	}
}

/* A 401 has no proof: the sender did not make the credential. */
static void done_check(struct wlbd_task *task)
{
	struct wlbd_call *call = (struct wlbd_call *)task;
	call->is_plain = call->refusal_status == 401;
	if (was_refused(call))
		return;
	if (call->text == NULL)
		call->route->handle(call);
	else if (wlbd_body_hold(call, call->values * VALUE_BYTES) == 0)
		do_task(call, run_parse, done_parse);
}

void wlbd_body_handle(struct wlbd_call *call)
{
	do_task(call, run_check, done_check);
}
