#include "coordinator/wlbd/http/head.h"

#include <event2/http.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "coordinator/wlbd/http/reply.h"
#include "coordinator/wlbd/http/request.h"
#include "coordinator/wlbd/wlbd.h"

struct headers {
	int lengths;
	int encodings;
	int credentials;
	const char *length;
	const char *credential;
	const char *accept;
};

static enum MHD_Result read_header(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct headers *headers = context;
	(void)kind;
	if (strcasecmp(name, "Content-Length") == 0) {
		headers->lengths++;
		headers->length = value;
	} else if (strcasecmp(name, "Transfer-Encoding") == 0) {
		headers->encodings++;
	} else if (strcasecmp(name, "Authorization") == 0) {
		headers->credentials++;
		headers->credential = value;
	} else if (strcasecmp(name, "Accept") == 0) {
		headers->accept = value;
	}
	return MHD_YES;
}

/* Splits the request's target. Returns -1 where it cannot be read. */
static int find_route(struct wlbd_exchange *exchange)
{
	struct wlbd_request *request = exchange->request;
	const struct wlbd_routes *routes = request->wlbd->routes;
	struct evhttp_uri *uri = evhttp_uri_parse_with_flags(request->uri, EVHTTP_URI_NONCONFORMANT);
	const char *path = uri != NULL ? evhttp_uri_get_path(uri) : NULL;
	const char *query = uri != NULL ? evhttp_uri_get_query(uri) : NULL;
	int rc = path == NULL || (query != NULL && evhttp_parse_query_str(query, &request->query) != 0) ? -1 : 0;
	if (rc == 0)
		exchange->match = wlbd_route_match(routes->list, routes->count, request->method, path, &request->route,
		                                   request->run);
	if (uri != NULL)
		evhttp_uri_free(uri);
	return rc;
}

/* Returns the name with static lifetime; NULL: the method is not supported. */
static const char *method_name(const char *method)
{
	static const char *const names[] = {"GET", "POST"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(method, names[i]) == 0)
			return names[i];
	return NULL;
}

int wlbd_head_read(struct wlbd_exchange *exchange, const char *method, const char **credential)
{
	struct wlbd_request *request = exchange->request;
	struct headers headers = {0};
	MHD_get_connection_values(exchange->mhd, MHD_HEADER_KIND, read_header, &headers);
	*credential = headers.credential;
	request->takes_openmetrics =
		headers.accept != NULL && strstr(headers.accept, "application/openmetrics-text") != NULL;
	request->method = method_name(method);
	if (request->method == NULL) {
		request->method = "-";
		wlbd_request_fail(request, 405, "method '%.20s': must be GET or POST", method);
		return -1;
	}
	if (headers.lengths > 1 || headers.encodings > 0 || headers.credentials > 1) {
		exchange->is_closed_next = true; /* it is not known where the next request begins */
		wlbd_request_fail(request, 400,
		                  "send Content-Length and Authorization once each, and no Transfer-Encoding");
		return -1;
	}
	exchange->expected_bytes = headers.length != NULL ? strtoull(headers.length, NULL, 10) : 0;
	if (find_route(exchange) == 0)
		return 0;
	wlbd_request_fail(request, 400, "the request line has no path and query that can be read");
	return -1;
}

int wlbd_head_check_route(struct wlbd_exchange *exchange)
{
	struct wlbd_request *request = exchange->request;
	switch (exchange->match) {
	case WLBD_MATCH:
		return 0;
	case WLBD_MATCH_NO_PATH:
		wlbd_request_fail(request, 404, "path '%.100s': does not exist; docs/api.md lists the paths",
		                  request->uri);
		break;
	case WLBD_MATCH_NO_METHOD:
		wlbd_request_fail(request, 405, "%s is not possible on '%.100s'", request->method, request->uri);
		break;
	case WLBD_MATCH_BAD_RUN:
		wlbd_request_fail(request, 400,
		                  "path '%.100s': must have the name of a run, such as 12, 12.2 or, to read it, 12_1",
		                  request->uri);
		break;
	}
	return -1;
}
