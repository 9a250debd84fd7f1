#include "coordinator/wlbd/http.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/keyvalq_struct.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "coordinator/wlbd/auth.h"
#include "coordinator/wlbd/fields.h"
#include "coordinator/wlbd/guard.h"
#include "coordinator/wlbd/handlers.h"
#include "coordinator/wlbd/wlbd.h"

enum {
	BODY_MOST_BYTES = 8 << 20,
	HEADERS_MOST_BYTES = 16 << 10,
	BACKLOG = 4096, /* every node comes back at once after a restart */
};

static const struct wlbd_route routes[] = {
	{"POST", "/v1/runs/*/report", false, wlbd_post_report},
	{"POST", "/v1/runs/*/records", false, wlbd_post_records},
	{"POST", "/v1/runs/*/attempts", false, wlbd_post_attempt},
	{"POST", "/v1/runs/*/end", false, wlbd_post_end},
	{"POST", "/v1/runs", false, wlbd_post_run},
	{"GET", "/v1/runs", false, wlbd_get_runs},
	{"GET", "/v1/runs/*/steps", false, wlbd_get_steps},
	{"GET", "/v1/runs/*", false, wlbd_get_run},
	{"GET", "/healthz", true, wlbd_get_health},
	{"GET", "/metrics", true, wlbd_get_metrics},
};
enum { ROUTE_COUNT = sizeof(routes) / sizeof(routes[0]) };

/* ---- a request ----------------------------------------------------------------------------------- */

static const char *method_name(struct evhttp_request *request)
{
	return evhttp_request_get_command(request) == EVHTTP_REQ_POST ? "POST" : "GET";
}

/* Who asks is known: the body is read only now. */
static void dispatch(struct wlbd_call *call)
{
	struct wlb_error error;
	if (strcmp(call->route->method, "POST") == 0) {
		call->body = wlbd_body_parse(call->text, call->text_length, &error);
		if (call->body == NULL) {
			wlbd_call_fail(call, 400, "%s", error.message);
			return;
		}
	}
	call->route->handle(call);
}

static void route(struct wlbd_call *call, const char *path)
{
	switch (wlbd_route_match(routes, ROUTE_COUNT, method_name(call->request), path, &call->route, call->run)) {
	case WLBD_MATCH:
		if (call->route->open)
			dispatch(call);
		else
			wlbd_auth_check(call, dispatch);
		break;
	case WLBD_MATCH_NO_PATH:
		wlbd_call_fail(call, 404, "path '%.100s': there is none such; docs/api.md lists them", path);
		break;
	case WLBD_MATCH_NO_METHOD:
		wlbd_call_fail(call, 405, "%s is not possible on '%.100s'", method_name(call->request), path);
		break;
	case WLBD_MATCH_BAD_RUN:
		wlbd_call_fail(call, 400, "path '%.100s': a run is JOBID or JOBID.N, such as 12 or 12.2", path);
		break;
	}
}

static void on_request(struct evhttp_request *request, void *context)
{
	struct wlbd *wlbd = context;
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
	const char *path = uri != NULL ? evhttp_uri_get_path(uri) : NULL;
	const char *query = uri != NULL ? evhttp_uri_get_query(uri) : NULL;
	struct wlbd_call *call = wlbd_call_new(wlbd, request);

	if (call == NULL) {
		evhttp_send_error(request, 503, "out of memory");
		return;
	}
	struct evhttp_connection *connection = evhttp_request_get_connection(request);
	wlbd_guards_request(wlbd->guards, evhttp_connection_get_bufferevent(connection));
	if (path == NULL || (query != NULL && evhttp_parse_query_str(query, &call->query) != 0))
		wlbd_call_fail(call, 400, "the request line has no path and query that can be read");
	else
		route(call, path);
}

/* ---- the socket ------------------------------------------------------------------------------------ */

static int bind_one(const struct addrinfo *address)
{
	int yes = 1;
	int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	int failure = errno;
	close(fd);
	errno = failure;
	return -1;
}

static int open_socket(const struct wlbd_config *config, struct wlb_error *error)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
	struct addrinfo *found = NULL;
	char port[8];
	snprintf(port, sizeof(port), "%d", config->listen_port);
	int rc = getaddrinfo(config->listen_host, port, &hints, &found);
	if (rc != 0)
		return wlb_fail(error, "listen = %s: %s", config->listen, gai_strerror(rc));
	int fd = bind_one(found);
	freeaddrinfo(found);
	if (fd < 0)
		return wlb_fail(error, "listen = %s: %s", config->listen, strerror(errno));
	return fd;
}

static void name_socket(int fd, char *text, size_t size)
{
	struct sockaddr_storage bound;
	socklen_t length = sizeof(bound);
	char host[256] = "?";
	char port[8] = "?";
	if (getsockname(fd, (struct sockaddr *)&bound, &length) == 0)
		getnameinfo((struct sockaddr *)&bound, length, host, sizeof(host), port, sizeof(port),
		            NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(text, size, bound.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

int wlbd_http_open(struct wlbd *wlbd, char *address, size_t size, struct wlb_error *error)
{
	int fd = open_socket(&wlbd->config, error);
	if (fd < 0)
		return -1;
	wlbd->guards = wlbd_guards_new(wlbd->base, wlbd->config.request_timeout_ms);
	wlbd->http = evhttp_new(wlbd->base);
	if (wlbd->guards == NULL || wlbd->http == NULL || evhttp_accept_socket(wlbd->http, fd) != 0) {
		close(fd);
		return wlb_fail(error, "out of memory");
	}
	evhttp_set_bevcb(wlbd->http, wlbd_guards_connection, wlbd->guards);
	evhttp_set_allowed_methods(wlbd->http, EVHTTP_REQ_GET | EVHTTP_REQ_POST);
	evhttp_set_max_headers_size(wlbd->http, HEADERS_MOST_BYTES);
	evhttp_set_max_body_size(wlbd->http, BODY_MOST_BYTES);
	evhttp_set_timeout(wlbd->http, wlbd->config.request_timeout_ms / 1000 + 10); /* after the guard's */
	evhttp_set_gencb(wlbd->http, on_request, wlbd);
	name_socket(fd, address, size);
	return 0;
}

void wlbd_http_close(struct wlbd *wlbd)
{
	if (wlbd->http != NULL)
		evhttp_free(wlbd->http);
	wlbd_guards_free(wlbd->guards);
}
