#include "coordinator/wlbd/http/auth.h"

#include <munge.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/wlbd/http/body.h"
#include "coordinator/wlbd/http/head.h"
#include "coordinator/wlbd/http/reply.h"
#include "coordinator/wlbd/http/request.h"
#include "coordinator/wlbd/wlbd.h"

static void refuse(struct wlbd_request *request, int status, const char *why, const char *remedy)
{
	request->refusal_status = status;
	wlb_fail(&request->refusal, "credential: %s; %s", why, remedy);
}

static void refuse_munge(struct wlbd_request *request, munge_err_t rc, munge_ctx_t context)
{
	const char *why = munge_ctx_strerror(context);
	if (why == NULL)
		why = munge_strerror(rc);
	switch (rc) {
	case EMUNGE_SOCKET:
	case EMUNGE_TIMEOUT:
		refuse(request, 503, why, "munged must run where wlbd runs");
		break;
	case EMUNGE_CRED_REPLAYED:
		refuse(request, 401, "it was used before", "make a new one for each request");
		break;
	case EMUNGE_CRED_EXPIRED:
	case EMUNGE_CRED_REWOUND:
		refuse(request, 401, why, "make it when it is needed, on a host whose clock is right");
		break;
	default:
		refuse(request, 401, why, "send the header Authorization: MUNGE and a credential made by munge");
	}
}

static void run_check(struct wlbd_task *task)
{
	struct wlbd_request *request = (struct wlbd_request *)task;
	const char *socket = request->wlbd->config.munge_socket;
	munge_ctx_t context = munge_ctx_create();
	void *payload = NULL;
	int length = 0;
	gid_t gid;

	if (context == NULL) {
		refuse(request, 503, "out of memory", "try again");
		return;
	}
	if (*socket != '\0')
		munge_ctx_set(context, MUNGE_OPT_SOCKET, socket);
	munge_err_t rc = munge_decode(request->credential, context, &payload, &length, &request->uid, &gid);
	if (rc != EMUNGE_SUCCESS)
		refuse_munge(request, rc, context);
	else if (length != WLB_DIGEST_SIZE - 1)
		refuse(request, 401, "its payload is no digest",
		       "it must be the SHA-256 of METHOD, path with query, and body");
	else
		memcpy(request->claim, payload, (size_t)length);
	free(payload);
	munge_ctx_destroy(context);
}

/* Allocates the buffer of the body. Returns -1 where that is refused; the request is answered then. */
static int allocate_body(struct wlbd_exchange *exchange)
{
	struct wlbd_request *request = exchange->request;
	size_t bytes = exchange->expected_bytes;
	size_t max_bytes = request->route->body_max_bytes;
	if (bytes > max_bytes) {
		wlbd_request_fail(request, 413, "body: %zu bytes; at most %zu are accepted there", bytes, max_bytes);
		return -1;
	}
	if (wlbd_body_hold(request, bytes) != 0)
		return -1;
	if (strcmp(request->method, "POST") != 0 || (request->text = malloc(bytes + 1)) != NULL)
		return 0;
	wlbd_request_fail_memory(request);
	return -1;
}

/* request->uid is known. Lets the library read the body; or answers 404, 405, 413, or 503: a budget is used up, or this
 * wlbd stands by.
 */
static void admit(struct wlbd_request *request)
{
	struct wlbd_exchange *exchange = request->exchange;
	if (wlbd_connection_proved(request->connection, request->uid) != WLBD_BUDGET_TAKEN) {
		exchange->is_closed_next = true;
		wlbd_request_fail(
			request, 503,
			"uid %u has too many connections, beside those of other users; close some, or try again",
			request->uid);
	} else if (!request->wlbd->is_acting) {
		wlbd_request_fail_standby(request);
	} else if (wlbd_head_check_route(exchange) == 0 && allocate_body(exchange) == 0) {
		wlbd_exchange_resume(exchange);
	}
}

static void finish_check(struct wlbd_task *task)
{
	struct wlbd_request *request = (struct wlbd_request *)task;
	if (request->wlbd->stopping)
		refuse(request, 503, "wlbd is stopping", "try again");
	if (request->refusal_status == 0) {
		admit(request);
		return;
	}
	request->uid = (uid_t)-1;
	free(request->credential);
	request->credential = NULL;
	wlbd_request_fail(request, request->refusal_status, "%s", request->refusal.message);
}

static void discard_check(struct wlbd_task *task)
{
	refuse((struct wlbd_request *)task, 503, "too many credentials wait to be checked", "try again");
	finish_check(task);
}

void wlbd_auth_check(struct wlbd_request *request, const char *header)
{
	if (header == NULL || strncasecmp(header, "MUNGE ", 6) != 0) {
		wlbd_request_fail(
			request, 401,
			"credential: is missing; send the header Authorization: MUNGE and a credential made by munge");
		return;
	}
	if ((request->credential = strdup(header + 6)) == NULL) {
		wlbd_request_fail_memory(request);
		return;
	}
	request->task = (struct wlbd_task){.run = run_check, .done = finish_check, .discard = discard_check};
	wlbd_thread_pool_submit(request->wlbd->auth, &request->task);
}
