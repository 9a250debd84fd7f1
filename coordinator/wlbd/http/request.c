#include "coordinator/wlbd/http/request.h"

#include <event2/http.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "coordinator/wlbd/http/auth.h"
#include "coordinator/wlbd/http/body.h"
#include "coordinator/wlbd/http/call.h"
#include "coordinator/wlbd/http/http.h"
#include "coordinator/wlbd/requests/handlers.h"
#include "coordinator/wlbd/wlbd.h"

enum {
	BODY_MOST_BYTES = 1 << 20,
	RECORDS_MOST_BYTES = 8 << 20,
	/* A body that is refused is read and thrown away, so that the client comes to read why; up to here. */
	WASTE_MOST_BYTES = 64 << 20,
	WASTE_UNPROVED_MOST_BYTES = 1 << 20,
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

struct wlbd_exchange {
	TAILQ_ENTRY(wlbd_exchange) link;
	struct MHD_Connection *mhd;
	struct wlbd_call *call;
	size_t expected_bytes; /* of the body */
	enum wlbd_match match;
	bool begun;     /* the head was looked at */
	bool head_done; /* and is done with: what comes is the body */
	bool suspended; /* the library waits for us */
	bool answered;
	bool close; /* after the reply */
};

/* ---- the head -------------------------------------------------------------------------------------- */

struct head {
	int lengths;
	int encodings;
	int credentials;
	const char *length;
	const char *credential;
	const char *agent;
	const char *protocol;
};

static enum MHD_Result read_header(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct head *head = context;
	(void)kind;
	if (strcasecmp(name, "Content-Length") == 0) {
		head->lengths++;
		head->length = value;
	} else if (strcasecmp(name, "Transfer-Encoding") == 0) {
		head->encodings++;
	} else if (strcasecmp(name, "Authorization") == 0) {
		head->credentials++;
		head->credential = value;
	} else if (strcasecmp(name, "User-Agent") == 0) {
		head->agent = value;
	} else if (strcasecmp(name, "WLB-Protocol") == 0) {
		head->protocol = value;
	}
	return MHD_YES;
}

/* Splits the request's target; -1 when it cannot be read. */
static int find_route(struct wlbd_exchange *exchange)
{
	struct wlbd_call *call = exchange->call;
	struct evhttp_uri *uri = evhttp_uri_parse_with_flags(call->uri, EVHTTP_URI_NONCONFORMANT);
	const char *path = uri != NULL ? evhttp_uri_get_path(uri) : NULL;
	const char *query = uri != NULL ? evhttp_uri_get_query(uri) : NULL;
	int rc = path == NULL || (query != NULL && evhttp_parse_query_str(query, &call->query) != 0) ? -1 : 0;
	if (rc == 0)
		exchange->match = wlbd_route_match(routes, ROUTE_COUNT, call->method, path, &call->route, call->run);
	if (uri != NULL)
		evhttp_uri_free(uri);
	return rc;
}

static const char *method_name(const char *method)
{
	static const char *const names[] = {"GET", "POST"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(method, names[i]) == 0)
			return names[i];
	return NULL;
}

/* Answers what nothing can be done with. */
static int check_head(struct wlbd_exchange *exchange, const struct head *head, const char *method)
{
	struct wlbd_call *call = exchange->call;
	call->method = method_name(method);
	if (call->method == NULL) {
		call->method = "-";
		wlbd_call_fail(call, 405, "method '%.20s': there are GET and POST", method);
		return -1;
	}
	if (head->lengths > 1 || head->encodings > 0 || head->credentials > 1) {
		exchange->close = true; /* where the next request would begin is anyone's guess */
		wlbd_call_fail(call, 400, "send Content-Length and Authorization once each, and no Transfer-Encoding");
		return -1;
	}
	exchange->expected_bytes = head->length != NULL ? strtoull(head->length, NULL, 10) : 0;
	if (find_route(exchange) == 0)
		return 0;
	wlbd_call_fail(call, 400, "the request line has no path and query that can be read");
	return -1;
}

static int check_route(struct wlbd_exchange *exchange)
{
	struct wlbd_call *call = exchange->call;
	switch (exchange->match) {
	case WLBD_MATCH:
		return 0;
	case WLBD_MATCH_NO_PATH:
		wlbd_call_fail(call, 404, "path '%.100s': there is none such; docs/api.md lists them", call->uri);
		break;
	case WLBD_MATCH_NO_METHOD:
		wlbd_call_fail(call, 405, "%s is not possible on '%.100s'", call->method, call->uri);
		break;
	case WLBD_MATCH_BAD_RUN:
		wlbd_call_fail(call, 400, "path '%.100s': a run is JOBID or JOBID.N, such as 12 or 12.2", call->uri);
		break;
	}
	return -1;
}

static size_t body_most_bytes(const struct wlbd_route *route)
{
	if (strcmp(route->method, "GET") == 0)
		return 0;
	return route->handle == wlbd_post_records ? RECORDS_MOST_BYTES : BODY_MOST_BYTES;
}

/* ---- who asks is known ------------------------------------------------------------------------------ */

static void suspend(struct wlbd_exchange *exchange)
{
	exchange->suspended = true;
	MHD_suspend_connection(exchange->mhd);
}

static void resume(struct wlbd_exchange *exchange)
{
	exchange->suspended = false;
	MHD_resume_connection(exchange->mhd);
	wlbd_http_wake(exchange->call->wlbd->http);
}

static int make_place(struct wlbd_exchange *exchange)
{
	struct wlbd_call *call = exchange->call;
	size_t bytes = exchange->expected_bytes, most = body_most_bytes(call->route);
	if (bytes > most) {
		wlbd_call_fail(call, 413, "body: %zu bytes, at most %zu are taken there", bytes, most);
		return -1;
	}
	if (wlbd_body_hold(call, bytes) != 0)
		return -1;
	if (strcmp(call->method, "POST") != 0 || (call->text = malloc(bytes + 1)) != NULL)
		return 0;
	wlbd_call_fail(call, 503, "out of memory; try again");
	return -1;
}

static void on_proved(struct wlbd_call *call)
{
	struct wlbd_exchange *exchange = call->exchange;
	if (wlbd_connection_proved(call->connection, call->uid) != WLBD_BUDGET_TAKEN) {
		exchange->close = true;
		wlbd_call_fail(call, 503, "uid %u has too many connections; close some", call->uid);
	} else if (check_route(exchange) == 0 && make_place(exchange) == 0) {
		resume(exchange);
	}
}

/* ---- the library's callbacks ------------------------------------------------------------------------ */

void *wlbd_request_begin(void *context, const char *uri, struct MHD_Connection *mhd)
{
	struct wlbd *wlbd = context;
	struct wlbd_exchange *exchange = calloc(1, sizeof(*exchange));
	if (exchange == NULL || (exchange->call = wlbd_call_new(wlbd, uri)) == NULL) {
		free(exchange);
		return NULL;
	}
	exchange->mhd = mhd;
	exchange->call->exchange = exchange;
	TAILQ_INSERT_TAIL(wlbd_http_exchanges(wlbd->http), exchange, link);
	return exchange;
}

void wlbd_request_end(void *wlbd, struct MHD_Connection *mhd, void **context, enum MHD_RequestTerminationCode why)
{
	struct wlbd_exchange *exchange = *context;
	(void)mhd;
	(void)why;
	if (exchange == NULL)
		return;
	TAILQ_REMOVE(wlbd_http_exchanges(((struct wlbd *)wlbd)->http), exchange, link);
	wlbd_call_free(exchange->call);
	free(exchange);
	*context = NULL;
}

/* Looks at the head: answers, or asks munged, or leaves all as it is where nobody needs to say who asks. True when the
 * library was suspended, and so calls again, even though it may have been resumed meanwhile. */
static bool begin(struct wlbd_exchange *exchange, const char *method)
{
	struct wlbd_call *call = exchange->call;
	struct head head = {0};
	exchange->begun = true;
	MHD_get_connection_values(exchange->mhd, MHD_HEADER_KIND, read_header, &head);
	call->outdated = head.agent != NULL && strncmp(head.agent, "wlb/", 4) == 0 && head.protocol == NULL;
	if (check_head(exchange, &head, method) != 0)
		return false;
	bool open = exchange->match == WLBD_MATCH && call->route->open;
	if (open || strncmp(call->uri, "/v1/", 4) != 0) {
		if (check_route(exchange) == 0 && !open)
			wlbd_call_fail(call, 400, "the path must be written as it is, such as /v1/runs");
		return false;
	}
	suspend(exchange);
	wlbd_auth_check(call, head.credential, on_proved);
	return true;
}

/* The request is whole. */
static void take(struct wlbd_exchange *exchange)
{
	struct wlbd_call *call = exchange->call;
	suspend(exchange);
	wlbd_connection_busy(call->connection, true);
	if (call->route->open) {
		call->route->handle(call);
		return;
	}
	if (call->text != NULL)
		call->text[call->text_length] = '\0';
	wlbd_body_take(call, call->route->handle);
}

static enum MHD_Result queue(struct wlbd_exchange *exchange)
{
	struct wlbd_answer *answer = &exchange->call->answer;
	struct MHD_Response *response =
		MHD_create_response_from_buffer(answer->length, answer->body, MHD_RESPMEM_MUST_FREE);
	if (response == NULL)
		return MHD_NO;
	answer->body = NULL;
	MHD_add_response_header(response, "Content-Type", answer->type);
	if (answer->proof != NULL)
		MHD_add_response_header(response, "WLB-Proof", answer->proof);
	if (exchange->close)
		MHD_add_response_header(response, "Connection", "close");
	enum MHD_Result result = MHD_queue_response(exchange->mhd, (unsigned int)answer->status, response);
	MHD_destroy_response(response);
	wlbd_connection_busy(exchange->call->connection, false);
	return result;
}

/* There is a reply, and perhaps still a body on its way. */
static enum MHD_Result give_answer(struct wlbd_exchange *exchange, size_t *size)
{
	size_t waste = exchange->call->credential != NULL ? WASTE_MOST_BYTES : WASTE_UNPROVED_MOST_BYTES;
	if (*size > 0) {
		*size = 0;
		return MHD_YES;
	}
	bool body_comes = !exchange->head_done && exchange->expected_bytes > 0;
	exchange->head_done = true;
	return body_comes && exchange->expected_bytes <= waste && !exchange->close ? MHD_YES : queue(exchange);
}

enum MHD_Result wlbd_request_on_data(void *wlbd, struct MHD_Connection *mhd, const char *path, const char *method,
                                     const char *version, const char *data, size_t *size, void **context)
{
	struct wlbd_exchange *exchange = *context;
	const union MHD_ConnectionInfo *about = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	(void)wlbd;
	(void)path;
	(void)version;
	if (exchange == NULL || about == NULL || about->socket_context == NULL)
		return MHD_NO; /* memory is out: the connection is closed */
	struct wlbd_call *call = exchange->call;
	call->connection = about->socket_context;
	if (!exchange->begun && begin(exchange, method))
		return MHD_YES;
	if (exchange->answered)
		return give_answer(exchange, size);
	if (!exchange->head_done) {
		exchange->head_done = true;
	} else if (*size > 0) {
		if (call->text != NULL && *size <= exchange->expected_bytes - call->text_length) {
			memcpy(call->text + call->text_length, data, *size);
			call->text_length += *size;
		}
		*size = 0;
	} else {
		take(exchange);
	}
	return MHD_YES;
}

void wlbd_request_answered(struct wlbd_call *call)
{
	struct wlbd_exchange *exchange = call->exchange;
	exchange->answered = true;
	if (exchange->suspended)
		resume(exchange);
}

void wlbd_request_abandon_all(struct wlbd_exchanges *exchanges)
{
	struct wlbd_exchange *exchange;
	TAILQ_FOREACH(exchange, exchanges, link)
	if (exchange->suspended)
		resume(exchange);
}
