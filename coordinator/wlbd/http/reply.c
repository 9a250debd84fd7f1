#include "coordinator/wlbd/http/reply.h"

#include <event2/buffer.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/digest.h"
#include "coordinator/client/credential.h"
#include "coordinator/wlbd/http/exchange.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/wlbd.h"

static void finish(struct wlbd_call *call)
{
	struct wlbd_counters *counters = &call->wlbd->counters;
	int64_t took_ms = wlb_clock_ms() - call->began_ms;
	int status = call->answer.status;

	counters->requests[status / 100 % 6]++;
	counters->request_seconds += (double)took_ms / 1000;
	wlbd_log(WLBD_LOG_DEBUG, "%s %s -> %d, %lld ms, uid %ld", call->method, call->uri, status, (long long)took_ms,
	         (long)call->uid);
	wlbd_exchange_answered(call->exchange);
}

/* ---- proof ----------------------------------------------------------------------------------------- */

static void run_proof(struct wlbd_task *task)
{
	struct wlbd_call *call = (struct wlbd_call *)task;
	struct wlbd_answer *answer = &call->answer;
	char digest[WLB_DIGEST_SIZE];
	wlb_digest_reply(call->credential, answer->status, call->method, call->uri, answer->body, answer->length,
	                 digest);
	char *credential = wlb_credential_make_for(call->wlbd->config.munge_socket, call->uid, digest,
	                                           WLB_DIGEST_SIZE - 1, &call->refusal);
	if (credential != NULL && asprintf(&answer->proof, "MUNGE %s", credential) < 0)
		answer->proof = NULL;
	free(credential);
}

static void finish_proof(struct wlbd_task *task)
{
	struct wlbd_call *call = (struct wlbd_call *)task;
	if (call->answer.proof == NULL) /* the client ignores the reply, and asks again */
		wlbd_log_limited(WLBD_LOG_WARNING, WLBD_LIMIT_MUNGE, "a reply has no proof: %s", call->refusal.message);
	finish(call);
}

static void discard_proof(struct wlbd_task *task)
{
	wlb_fail(&((struct wlbd_call *)task)->refusal, "too many requests wait for munged, or wlbd is stopping");
	finish_proof(task);
}

/* ---- replies --------------------------------------------------------------------------------------- */

/* Takes `body`; NULL: out of memory. */
static void reply(struct wlbd_call *call, int status, const char *type, char *body, size_t length)
{
	call->answer = (struct wlbd_answer){.status = status, .type = type, .body = body, .length = length};
	if (body == NULL)
		call->answer = (struct wlbd_answer){.status = 503, .type = type};
	if (call->credential == NULL || call->is_plain || call->wlbd->stopping) {
		finish(call);
		return;
	}
	call->task = (struct wlbd_task){.run = run_proof, .done = finish_proof, .discard = discard_proof};
	wlbd_thread_pool_submit(call->wlbd->auth, &call->task);
}

void wlbd_call_reply_buffer(struct wlbd_call *call, const char *type, struct evbuffer *out)
{
	size_t length = evbuffer_get_length(out);
	char *body = malloc(length + 1);
	if (body != NULL)
		evbuffer_remove(out, body, length);
	evbuffer_free(out);
	reply(call, 200, type, body, length);
}

void wlbd_call_reply_text(struct wlbd_call *call, int status, const char *json)
{
	size_t length = strlen(json) + 1;
	char *body = malloc(length + 1);
	if (body != NULL) {
		memcpy(body, json, length - 1);
		memcpy(body + length - 1, "\n", 2);
	}
	reply(call, status, "application/json", body, length);
}

void wlbd_call_reply(struct wlbd_call *call, int status, json_t *json)
{
	char *text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(17));
	json_decref(json);
	wlbd_call_reply_text(call, text != NULL ? status : 500, text != NULL ? text : "{\"error\":\"out of memory\"}");
	free(text);
}

void wlbd_call_fail(struct wlbd_call *call, int status, const char *format, ...)
{
	char message[2048];
	va_list args;
	va_start(args, format);
	wlb_text_vformat(message, sizeof(message), format, args);
	va_end(args);
	wlbd_call_reply(call, status, json_pack("{s:s}", "error", message));
}

void wlbd_call_fail_memory(struct wlbd_call *call)
{
	wlbd_call_fail(call, 503, "out of memory; try again");
}

void wlbd_call_fail_stopping(struct wlbd_call *call)
{
	wlbd_call_fail(call, 503, "wlbd is stopping; try again");
}

void wlbd_call_fail_db(struct wlbd_call *call, const struct wlbd_db_result *result)
{
	wlbd_call_fail(call, result->http_status, "%s", result->message);
}
