#include "coordinator/wlbd/call.h"

#include <event2/buffer.h>
#include <event2/keyvalq_struct.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "coordinator/client/clock.h"
#include "coordinator/wlbd/guard.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/proof.h"
#include "coordinator/wlbd/wlbd.h"

/* wlb of before proofs says what it is, but not the protocol. */
static bool asked_by_older(struct evhttp_request *request)
{
	const struct evkeyvalq *headers = evhttp_request_get_input_headers(request);
	const char *agent = evhttp_find_header(headers, "User-Agent");
	return agent != NULL && strncmp(agent, "wlb/", 4) == 0 && evhttp_find_header(headers, "WLB-Protocol") == NULL;
}

struct wlbd_call *wlbd_call_new(struct wlbd *wlbd, struct evhttp_request *request)
{
	struct wlbd_call *call = calloc(1, sizeof(*call));
	struct evbuffer *input = evhttp_request_get_input_buffer(request);
	size_t length = evbuffer_get_length(input);
	char *text = malloc(length + 1);
	if (call == NULL || text == NULL) {
		free(call);
		free(text);
		return NULL;
	}
	evbuffer_remove(input, text, length);
	text[length] = '\0';
	call->wlbd = wlbd;
	call->request = request;
	call->uri = evhttp_request_get_uri(request);
	call->outdated = asked_by_older(request);
	call->text = text;
	call->text_length = length;
	call->began_ms = wlb_clock_ms();
	TAILQ_INIT(&call->query);
	return call;
}

static void call_free(struct wlbd_call *call)
{
	json_decref(call->body);
	evhttp_clear_headers(&call->query);
	free(call->credential);
	free(call->text);
	free(call);
}

static const char *status_text(int status)
{
	switch (status) {
	case 200:
		return "OK";
	case 400:
		return "Bad Request";
	case 401:
		return "Unauthorized";
	case 403:
		return "Forbidden";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 409:
		return "Conflict";
	case 413:
		return "Payload Too Large";
	case 503:
		return "Service Unavailable";
	default:
		return "Internal Server Error";
	}
}

static void send_answer(struct wlbd_call *call, struct wlbd_answer *answer)
{
	int status = answer->status;
	struct wlbd_metrics *metrics = &call->wlbd->metrics;
	struct evkeyvalq *headers = evhttp_request_get_output_headers(call->request);
	int64_t took_ms = wlb_clock_ms() - call->began_ms;

	metrics->requests[status / 100 % 6]++;
	metrics->request_seconds += (double)took_ms / 1000;
	wlbd_log(WLBD_LOG_DEBUG, "%s %s -> %d, %lld ms, uid %ld", call->route != NULL ? call->route->method : "-",
	         call->uri, status, (long long)took_ms, (long)call->uid);
	struct evhttp_connection *connection = evhttp_request_get_connection(call->request);
	if (connection != NULL) /* else the client is gone, and evhttp drops the reply */
		wlbd_guards_reply(call->wlbd->guards, evhttp_connection_get_bufferevent(connection));
	evhttp_add_header(headers, "Content-Type", answer->type);
	if (answer->proof != NULL) {
		evhttp_add_header(headers, "WLB-Proof", answer->proof);
		free(answer->proof);
	}
	evhttp_send_reply(call->request, status, status_text(status), answer->body);
	evbuffer_free(answer->body);
	call_free(call);
}

static void reply(struct wlbd_call *call, int status, const char *type, struct evbuffer *out)
{
	struct wlbd_answer answer = {.status = status, .type = type, .body = out};
	if (call->credential != NULL && !call->plain)
		wlbd_proof_make(call, &answer, send_answer);
	else
		send_answer(call, &answer);
}

void wlbd_call_reply_buffer(struct wlbd_call *call, const char *type, struct evbuffer *out)
{
	reply(call, 200, type, out);
}

void wlbd_call_reply_text(struct wlbd_call *call, int status, const char *json)
{
	struct evbuffer *out = evbuffer_new();
	evbuffer_add(out, json, strlen(json));
	evbuffer_add(out, "\n", 1);
	reply(call, status, "application/json", out);
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
