#include "coordinator/client/request_once.h"

#include <stdlib.h>

#include "coordinator/client/client.h"

char *wlb_client_request_once(const struct wlb_client_config *config, const char *method, const char *path,
                              const char *body, int timeout_ms, struct wlb_error *error)
{
	struct wlb_reply reply;
	struct wlb_connection *connection = wlb_connection_new(config);
	if (connection == NULL) {
		wlb_fail(error, "out of memory for the request");
		return NULL;
	}
	int rc = wlb_connection_request(connection, method, path, body, timeout_ms, &reply, error);
	wlb_connection_free(connection);
	if (rc != 0)
		return NULL;
	if (reply.status == 200)
		return reply.body;
	wlb_reply_failure(&reply, error);
	free(reply.body);
	return NULL;
}
