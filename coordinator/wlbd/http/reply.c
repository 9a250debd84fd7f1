#include "coordinator/wlbd/http/reply.h"

#include <event2/buffer.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/digest.h"
#include "coordinator/client/credential.h"
#include "coordinator/wlbd/database/lease.h"
#include "coordinator/wlbd/http/exchange.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/wlbd.h"

static void finish(struct wlbd_request *request)
{
	struct wlbd_counters *counters = &request->wlbd->counters;
	int64_t took_ms = wlb_clock_ms() - request->began_ms;
	int status = request->answer.status;

	counters->requests[status / 100 % 6]++;
	counters->request_seconds += (double)took_ms / 1000;
	wlbd_log(WLBD_LOG_DEBUG, "%s %s -> %d, %lld ms, uid %ld", request->method, request->uri, status,
	         (long long)took_ms, (long)request->uid);
	wlbd_exchange_answered(request->exchange);
}

/* ---- proof ----------------------------------------------------------------------------------------- */

static void run_proof(struct wlbd_task *task)
{
	struct wlbd_request *request = (struct wlbd_request *)task;
	struct wlbd_answer *answer = &request->answer;
	char digest[WLB_DIGEST_SIZE];
	wlb_digest_reply(request->credential, answer->status, request->method, request->uri, answer->body,
	                 answer->length, digest);
	char *credential = wlb_credential_make_for(request->wlbd->config.munge_socket, request->uid, digest,
	                                           WLB_DIGEST_SIZE - 1, &request->refusal);
	if (credential != NULL && asprintf(&answer->proof, "MUNGE %s", credential) < 0)
		answer->proof = NULL;
	free(credential);
}

static void finish_proof(struct wlbd_task *task)
{
	struct wlbd_request *request = (struct wlbd_request *)task;
	if (request->answer.proof == NULL) /* the client ignores the reply, and asks again */
		wlbd_log_limited(WLBD_LOG_WARNING, WLBD_LIMIT_MUNGE, "a reply has no proof: %s",
		                 request->refusal.message);
	finish(request);
}

static void discard_proof(struct wlbd_task *task)
{
	wlb_fail(&((struct wlbd_request *)task)->refusal, "too many requests wait for munged, or wlbd is stopping");
	finish_proof(task);
}

/* ---- replies --------------------------------------------------------------------------------------- */

/* Takes `body`; NULL: out of memory. */
static void reply(struct wlbd_request *request, int status, const char *type, char *body, size_t length)
{
	request->answer = (struct wlbd_answer){.status = status, .type = type, .body = body, .length = length};
	if (body == NULL)
		request->answer = (struct wlbd_answer){.status = 503, .type = type};
	if (request->credential == NULL || request->is_plain || request->wlbd->stopping) {
		finish(request);
		return;
	}
	request->task = (struct wlbd_task){.run = run_proof, .done = finish_proof, .discard = discard_proof};
	wlbd_thread_pool_submit(request->wlbd->auth, &request->task);
}

void wlbd_request_reply_buffer(struct wlbd_request *request, const char *type, struct evbuffer *out)
{
	size_t length = evbuffer_get_length(out);
	char *body = malloc(length + 1);
	if (body != NULL)
		evbuffer_remove(out, body, length);
	evbuffer_free(out);
	reply(request, 200, type, body, length);
}

void wlbd_request_reply_text(struct wlbd_request *request, int status, const char *json)
{
	size_t length = strlen(json) + 1;
	char *body = malloc(length + 1);
	if (body != NULL) {
		memcpy(body, json, length - 1);
		memcpy(body + length - 1, "\n", 2);
	}
	reply(request, status, "application/json", body, length);
}

void wlbd_request_reply(struct wlbd_request *request, int status, json_t *json)
{
	char *text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(17));
	json_decref(json);
	wlbd_request_reply_text(request, text != NULL ? status : 500,
	                        text != NULL ? text : "{\"error\":\"out of memory\"}");
	free(text);
}

void wlbd_request_fail(struct wlbd_request *request, int status, const char *format, ...)
{
	char message[2048];
	va_list args;
	va_start(args, format);
	wlb_text_vformat(message, sizeof(message), format, args);
	va_end(args);
	wlbd_request_reply(request, status, json_pack("{s:s}", "error", message));
}

void wlbd_request_fail_memory(struct wlbd_request *request)
{
	wlbd_request_fail(request, 503, "out of memory; try again");
}

void wlbd_request_fail_standby(struct wlbd_request *request)
{
	char message[700];
	const char *address = wlbd_lease_address(request->wlbd->lease);
	wlb_text_format(message, sizeof(message), "this wlbd stands by, and %s acts",
	                *address != '\0' ? address : "none");
	wlbd_request_reply(request, 503, json_pack("{s:b, s:s}", "standby", 1, "error", message));
}

void wlbd_request_fail_stopping(struct wlbd_request *request)
{
	wlbd_request_fail(request, 503, "wlbd is stopping; try again");
}

void wlbd_request_fail_db(struct wlbd_request *request, const struct wlbd_db_result *result)
{
	wlbd_request_fail(request, result->http_status, "%s", result->message);
}
