#include "coordinator/wlb/open/page_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <microhttpd.h>

#include "common/seconds.h"
#include "coordinator/wlb/report/page.h"

enum {
	TOKEN_BYTES = (WLB_TOKEN_TEXT_BYTES - 1) / 2,
	CONNECTIONS_MOST = 16,
	CONNECTION_BYTES = 16 << 10,
	IDLE_S = 30,
};
static const double DATA_AGE_S = 2.0;

struct wlb_page_server {
	struct MHD_Daemon *daemon;
	char token[WLB_TOKEN_TEXT_BYTES];
	char data_path[1 + WLB_TOKEN_TEXT_BYTES + 8];
	wlb_page_data *data;
	void *context;
	/* Of the server's thread: the data that were asked for last, or why there are none. */
	json_t *newest;
	struct wlb_error why;
	double asked_s; /* 0: nothing was */
};

/* ---- replies ----------------------------------------------------------------------------------------------------- */

/* A reply that no browser stores, frames, or shows to another site. Takes over `text`, of malloc. */
static enum MHD_Result reply(struct MHD_Connection *connection, unsigned status, const char *type, char *text,
                             size_t bytes)
{
	char policy[WLB_REPORT_POLICY_BYTES], whole[WLB_REPORT_POLICY_BYTES + 64];
	struct MHD_Response *response = MHD_create_response_from_buffer(bytes, text, MHD_RESPMEM_MUST_FREE);
	if (response == NULL) {
		free(text);
		return MHD_NO;
	}
	wlb_report_policy(true, policy);
	snprintf(whole, sizeof(whole), "%s; frame-ancestors 'none'", policy);
	const char *const headers[][2] = {
		{"Content-Type", type},
		{"Content-Security-Policy", whole},
		{"Cache-Control", "no-store"},
		{"Referrer-Policy", "no-referrer"},
		{"X-Content-Type-Options", "nosniff"},
		{"Cross-Origin-Resource-Policy", "same-origin"},
		{"Cross-Origin-Opener-Policy", "same-origin"},
	};
	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		MHD_add_response_header(response, headers[i][0], headers[i][1]);
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, "Allow", "GET");
	enum MHD_Result result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, const char *text)
{
	char *copy = strdup(text);
	return copy != NULL ? reply(connection, status, "text/plain; charset=utf-8", copy, strlen(copy)) : MHD_NO;
}

/* ---- the page and its data --------------------------------------------------------------------------------------- */

static void renew(struct wlb_page_server *server)
{
	if (server->asked_s > 0.0 && wlb_now_s() - server->asked_s < DATA_AGE_S)
		return;
	json_decref(server->newest);
	server->newest = server->data(server->context, &server->why);
	server->asked_s = wlb_now_s();
}

static enum MHD_Result reply_json(struct MHD_Connection *connection, unsigned status, const json_t *value)
{
	char *text = value != NULL ? wlb_report_data_json(value) : NULL;
	return text != NULL ? reply(connection, status, "application/json", text, strlen(text)) : MHD_NO;
}

static enum MHD_Result reply_data(struct wlb_page_server *server, struct MHD_Connection *connection)
{
	renew(server);
	if (server->newest != NULL)
		return reply_json(connection, MHD_HTTP_OK, server->newest);
	json_t *why = json_pack("{s:s}", "error", server->why.message);
	enum MHD_Result result = reply_json(connection, MHD_HTTP_BAD_GATEWAY, why);
	json_decref(why);
	return result;
}

static enum MHD_Result reply_page(struct wlb_page_server *server, struct MHD_Connection *connection)
{
	char *text = NULL;
	size_t bytes = 0;
	renew(server);
	if (server->newest == NULL)
		return refuse(connection, MHD_HTTP_BAD_GATEWAY, server->why.message);
	FILE *out = open_memstream(&text, &bytes);
	if (out == NULL)
		return MHD_NO;
	int rc = wlb_report_page(server->newest, server->data_path, out, &server->why);
	if (fclose(out) == 0 && rc == 0)
		return reply(connection, MHD_HTTP_OK, "text/html; charset=utf-8", text, bytes);
	free(text);
	return MHD_NO;
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *path, const char *method,
                              const char *version, const char *body, size_t *body_bytes, void **state)
{
	struct wlb_page_server *server = context;
	const struct wlb_page_request request = {
		.method = method,
		.path = path,
		.host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host"),
		.origin = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Origin"),
		.fetch_site = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Sec-Fetch-Site"),
	};
	(void)version, (void)body, (void)state;
	*body_bytes = 0;
	switch (wlb_page_answer(&request, server->token)) {
	case WLB_ANSWER_PAGE:
		return reply_page(server, connection);
	case WLB_ANSWER_DATA:
		return reply_data(server, connection);
	case WLB_ANSWER_WRONG_METHOD:
		return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET\n");
	case WLB_ANSWER_NOTHING:
		return refuse(connection, MHD_HTTP_NOT_FOUND, "there is no such path\n");
	default:
		return refuse(connection, MHD_HTTP_FORBIDDEN, "open the whole address that wlb open has printed\n");
	}
}

/* ---- start and end ----------------------------------------------------------------------------------------------- */

static int make_token(char token[WLB_TOKEN_TEXT_BYTES], struct wlb_error *error)
{
	unsigned char bytes[TOKEN_BYTES];
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return wlb_fail(error, "no random numbers for the address: %s", strerror(errno));
	for (int i = 0; i < TOKEN_BYTES; i++)
		sprintf(token + 2 * i, "%02x", bytes[i]);
	return 0;
}

struct wlb_page_server *wlb_page_server_start(int port, wlb_page_data *data, void *context, struct wlb_error *error)
{
	struct wlb_page_server *server = calloc(1, sizeof(*server));
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (server == NULL || make_token(server->token, error) < 0) {
		if (server == NULL)
			wlb_fail(error, "out of memory");
		free(server);
		return NULL;
	}
	snprintf(server->data_path, sizeof(server->data_path), "/%s/data", server->token);
	server->data = data;
	server->context = context;
	server->daemon = MHD_start_daemon(
		MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, answer, server, MHD_OPTION_SOCK_ADDR, &address,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MOST, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)CONNECTION_BYTES, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S, MHD_OPTION_END);
	if (server->daemon != NULL)
		return server;
	wlb_fail(error, "127.0.0.1, port %d: %s", port, strerror(errno));
	free(server);
	return NULL;
}

void wlb_page_server_stop(struct wlb_page_server *server)
{
	if (server == NULL)
		return;
	MHD_stop_daemon(server->daemon);
	json_decref(server->newest);
	free(server);
}

int wlb_page_server_port(const struct wlb_page_server *server)
{
	return MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
}

const char *wlb_page_server_token(const struct wlb_page_server *server)
{
	return server->token;
}
