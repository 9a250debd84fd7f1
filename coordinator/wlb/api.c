#include "coordinator/wlb/api.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/client/reply.h"

enum { CALL_MS = 30000 };

json_t *wlb_api_request(struct wlb_connection *connection, const char *method, const char *path, const json_t *body,
                        int timeout_ms, int *status, struct wlb_error *error)
{
	struct wlb_reply reply;
	char *text = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;
	bool can_send = text != NULL || strcmp(method, "GET") == 0;
	if (status != NULL)
		*status = can_send ? 0 : WLB_API_NOT_SENT;
	if (!can_send) {
		wlb_fail(error, "%s %s is not sent: its body could not be made, for want of memory", method, path);
		return NULL;
	}
	int rc = wlb_connection_request(connection, method, path, text, timeout_ms, &reply, error);
	free(text);
	if (rc != 0)
		return NULL;
	if (status != NULL)
		*status = reply.status;
	json_t *root = NULL;
	json_error_t why;
	if (reply.status < 200 || reply.status > 299)
		wlb_reply_failure(&reply, error);
	else if ((root = json_loadb(reply.body, reply.length, 0, &why)) == NULL)
		wlb_fail(error, "the coordinator's reply to %s %s is not JSON: %s", method, path, why.text);
	free(reply.body);
	return root;
}

struct wlb_connection *wlb_api_open(struct wlb_error *error)
{
	struct wlb_client_config config;
	if (wlb_client_config_load(&config, error) != 0)
		return NULL;
	struct wlb_connection *connection = wlb_connection_new(&config);
	if (connection == NULL)
		wlb_fail(error, "out of memory for a connection");
	return connection;
}

/* On a connection of its own. */
static json_t *request_once(const char *method, const char *path, const json_t *body, struct wlb_error *error)
{
	struct wlb_connection *connection = wlb_api_open(error);
	if (connection == NULL)
		return NULL;
	json_t *root = wlb_api_request(connection, method, path, body, CALL_MS, NULL, error);
	wlb_connection_free(connection);
	return root;
}

json_t *wlb_api_get(const char *path, struct wlb_error *error)
{
	return request_once("GET", path, NULL, error);
}

json_t *wlb_api_post(const char *path, const json_t *body, struct wlb_error *error)
{
	return request_once("POST", path, body, error);
}

void wlb_api_query(char *path, size_t size, const char *key, const char *value)
{
	size_t at = strlen(path);
	at += (size_t)snprintf(path + at, size - at, "%c%s=", strchr(path, '?') == NULL ? '?' : '&', key);
	for (const char *c = value; *c != '\0' && at + 4 < size; c++) {
		bool plain = isalnum((unsigned char)*c) || strchr("-._~", *c) != NULL;
		at += (size_t)snprintf(path + at, size - at, plain ? "%c" : "%%%02X", (unsigned char)*c);
	}
}
