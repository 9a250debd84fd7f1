#include "coordinator/wlbd/http/call.h"

#include <event2/buffer.h>
#include <event2/http.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "coordinator/wlbd/http/proof.h"
#include "coordinator/wlbd/http/request.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/wlbd.h"

struct wlbd_call *wlbd_call_new(struct wlbd *wlbd, const char *uri)
{
	struct wlbd_call *call = calloc(1, sizeof(*call));
	if (call == NULL || (call->uri = strdup(uri)) == NULL) {
		free(call);
		return NULL;
	}
	call->wlbd = wlbd;
	call->uid = (uid_t)-1;
	call->began_ms = wlb_clock_ms();
	TAILQ_INIT(&call->query);
	return call;
}

void wlbd_call_free(struct wlbd_call *call)
{
	wlbd_budget_give(call->wlbd->budget, call->uid, call->held_bytes);
	json_decref(call->body);
	evhttp_clear_headers(&call->query);
	free(call->credential);
	free(call->answer.body);
	free(call->answer.proof);
	free(call->text);
	free(call->uri);
	free(call);
}

static void finish(struct wlbd_call *call)
{
	struct wlbd_metrics *metrics = &call->wlbd->metrics;
	int64_t took_ms = wlb_clock_ms() - call->began_ms;
	int status = call->answer.status;

	metrics->requests[status / 100 % 6]++;
	metrics->request_seconds += (double)took_ms / 1000;
	wlbd_log(WLBD_LOG_DEBUG, "%s %s -> %d, %lld ms, uid %ld", call->method, call->uri, status, (long long)took_ms,
	         (long)call->uid);
	wlbd_request_answered(call);
}

/* Takes `body`; NULL when memory is out. */
static void reply(struct wlbd_call *call, int status, const char *type, char *body, size_t length)
{
	call->answer = (struct wlbd_answer){.status = status, .type = type, .body = body, .length = length};
	if (body == NULL)
		call->answer = (struct wlbd_answer){.status = 503, .type = type};
	if (call->credential != NULL && !call->plain && !call->wlbd->stopping)
		wlbd_proof_make(call, finish);
	else
		finish(call);
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
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	json_t *text = json_string(message);
	if (text == NULL) /* a value of the request that is not UTF-8 */
		text = json_string("the request has bytes that are not UTF-8");
	wlbd_call_reply(call, status, json_pack("{s:o}", "error", text));
}

void wlbd_call_fail_db(struct wlbd_call *call, const struct wlbd_db_result *result)
{
	wlbd_call_fail(call, result->http_status, "%s", result->message);
}

bool wlbd_call_privileged(const struct wlbd_call *call)
{
	return call->uid == 0 || call->uid == call->wlbd->slurm_uid;
}

const char *wlbd_call_parameter(const struct wlbd_call *call, const char *name)
{
	const char *value = evhttp_find_header(&call->query, name);
	return value != NULL && *value != '\0' ? value : NULL;
}
