#include "coordinator/wlbd/http/receive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/wlbd/http/auth.h"
#include "coordinator/wlbd/http/body.h"
#include "coordinator/wlbd/http/exchange.h"
#include "coordinator/wlbd/http/head.h"
#include "coordinator/wlbd/http/reply.h"
#include "coordinator/wlbd/http/request.h"
#include "coordinator/wlbd/wlbd.h"

/* A body that is refused is read and ignored up to this size, so that the client then reads the reply. */
enum {
	IGNORED_MAX_BYTES = 64 << 20,
	IGNORED_UNPROVED_MAX_BYTES = 1 << 20,
};

/* The target of a request: its path and its query. */
enum {
	TARGET_MAX_BYTES = 8 << 10,
	ARGUMENTS_MAX = 64,
};

/* Returns -1 where the target is too long, with the reason. */
static int check_target(const char *target, struct wlb_error *error)
{
	size_t length = strlen(target);
	int arguments = 1;
	for (const char *c = strchr(target, '&'); c != NULL; c = strchr(c + 1, '&'))
		arguments++;
	if (length > TARGET_MAX_BYTES)
		return wlb_fail(error, "path and query have %zu bytes, and may have %d: docs/api.md lists the paths",
		                length, TARGET_MAX_BYTES);
	if (arguments > ARGUMENTS_MAX)
		return wlb_fail(error,
		                "the query has %d parameters, and may have %d: docs/api.md lists those of each path",
		                arguments, ARGUMENTS_MAX);
	return 0;
}

/* Target and parameters are in the memory that the library has for a connection. Where too little memory is left, the
 * library neither answers nor closes the connection: such a request is answered before the library reads on. */
static void refuse_target(struct wlbd *wlbd, struct MHD_Connection *mhd, const struct wlb_error *why)
{
	char body[sizeof(why->message) + 32], reply[sizeof(body) + 128];
	const union MHD_ConnectionInfo *about = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	snprintf(body, sizeof(body), "{\"error\":\"%s\"}\n", why->message);
	snprintf(reply, sizeof(reply),
	         "HTTP/1.1 414 URI Too Long\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
	         "Connection: close\r\n\r\n%s",
	         strlen(body), body);
	wlbd->counters.requests[4]++;
	if (about != NULL && about->socket_context != NULL)
		wlbd_connection_refuse(about->socket_context, reply);
}

void *wlbd_receive_begin(void *context, const char *uri, struct MHD_Connection *mhd)
{
	struct wlbd *wlbd = context;
	struct wlb_error error;
	if (check_target(uri, &error) != 0) {
		refuse_target(wlbd, mhd, &error);
		return NULL;
	}
	struct wlbd_exchange *exchange = calloc(1, sizeof(*exchange));
	if (exchange == NULL || (exchange->request = wlbd_request_new(wlbd, uri)) == NULL) {
		free(exchange);
		return NULL;
	}
	exchange->all = wlbd->exchanges;
	exchange->mhd = mhd;
	exchange->request->exchange = exchange;
	TAILQ_INSERT_TAIL(&exchange->all->list, exchange, link);
	return exchange;
}

void wlbd_receive_end(void *wlbd, struct MHD_Connection *mhd, void **context, enum MHD_RequestTerminationCode why)
{
	struct wlbd_exchange *exchange = *context;
	(void)wlbd;
	(void)mhd;
	(void)why;
	if (exchange == NULL)
		return;
	TAILQ_REMOVE(&exchange->all->list, exchange, link);
	wlbd_request_free(exchange->request);
	free(exchange);
	*context = NULL;
}

/* Answers, or asks munged, or does nothing where the route needs no credential. Returns whether the library was
 * suspended, and so calls again, even if it has been resumed since. */
static bool check_head(struct wlbd_exchange *exchange, const char *method)
{
	struct wlbd_request *request = exchange->request;
	const char *credential;
	exchange->is_head_checked = true;
	if (wlbd_head_read(exchange, method, &credential) != 0)
		return false;
	bool open = exchange->match == WLBD_MATCH && request->route->is_open;
	if (open || strncmp(request->uri, "/v1/", 4) != 0) {
		if (wlbd_head_check_route(exchange) == 0 && !open)
			wlbd_request_fail(request, 400, "path '%.100s': must begin with /v1/, such as /v1/runs",
			                  request->uri);
		return false;
	}
	wlbd_exchange_suspend(exchange);
	wlbd_connection_begin_check(request->connection);
	wlbd_auth_check(request, credential);
	return true;
}

/* The request has arrived whole. */
static void handle(struct wlbd_exchange *exchange)
{
	struct wlbd_request *request = exchange->request;
	wlbd_exchange_suspend(exchange);
	wlbd_connection_set_busy(request->connection, true);
	if (request->route->is_open) {
		request->route->handle(request);
		return;
	}
	if (request->text != NULL)
		request->text[request->text_length] = '\0';
	wlbd_body_handle(request);
}

static enum MHD_Result queue(struct wlbd_exchange *exchange)
{
	struct wlbd_answer *answer = &exchange->request->answer;
	struct MHD_Response *response =
		MHD_create_response_from_buffer(answer->length, answer->body, MHD_RESPMEM_MUST_FREE);
	if (response == NULL)
		return MHD_NO;
	answer->body = NULL;
	MHD_add_response_header(response, "Content-Type", answer->type);
	if (answer->proof != NULL)
		MHD_add_response_header(response, "WLB-Proof", answer->proof);
	if (exchange->is_closed_next)
		MHD_add_response_header(response, "Connection", "close");
	enum MHD_Result result = MHD_queue_response(exchange->mhd, (unsigned int)answer->status, response);
	MHD_destroy_response(response);
	wlbd_connection_set_busy(exchange->request->connection, false);
	return result;
}

/* The answer is complete; the body may still be arriving. */
static enum MHD_Result send_answer(struct wlbd_exchange *exchange, size_t *size)
{
	size_t max = exchange->request->credential != NULL ? IGNORED_MAX_BYTES : IGNORED_UNPROVED_MAX_BYTES;
	if (*size > 0) {
		*size = 0;
		return MHD_YES;
	}
	bool body_follows = !exchange->is_body_next && exchange->expected_bytes > 0;
	exchange->is_body_next = true;
	return body_follows && exchange->expected_bytes <= max && !exchange->is_closed_next ? MHD_YES : queue(exchange);
}

/* Bytes over the announced length are ignored. */
static void append_body(struct wlbd_exchange *exchange, const char *data, size_t size)
{
	struct wlbd_request *request = exchange->request;
	if (request->text == NULL || size > exchange->expected_bytes - request->text_length)
		return;
	memcpy(request->text + request->text_length, data, size);
	request->text_length += size;
}

enum MHD_Result wlbd_receive_on_data(void *wlbd, struct MHD_Connection *mhd, const char *path, const char *method,
                                     const char *version, const char *data, size_t *size, void **context)
{
	struct wlbd_exchange *exchange = *context;
	const union MHD_ConnectionInfo *about = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	(void)wlbd;
	(void)path;
	(void)version;
	if (exchange == NULL || about == NULL || about->socket_context == NULL)
		return MHD_NO; /* its target was refused, or out of memory: the connection is closed */
	exchange->request->connection = about->socket_context;
	if (!exchange->is_head_checked && check_head(exchange, method))
		return MHD_YES;
	if (exchange->is_answered)
		return send_answer(exchange, size);
	if (!exchange->is_body_next) {
		exchange->is_body_next = true;
	} else if (*size > 0) {
		append_body(exchange, data, *size);
		*size = 0;
	} else {
		handle(exchange);
	}
	return MHD_YES;
}
