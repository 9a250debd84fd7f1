/* Requests of the command: JSON out, JSON in. */
#ifndef COORDINATOR_WLB_API_H
#define COORDINATOR_WLB_API_H

#include <jansson.h>

#include "coordinator/client/client.h"

enum { WLB_API_NOT_SENT = -1 };

/* Sends the request and returns the reply's JSON; the caller releases it. Returns NULL if there was no reply (*status
 * 0), it is not a success (*status as answered), or a POST has no body because it could not be made (*status
 * WLB_API_NOT_SENT); the message then says why, in the coordinator's words if it sent any. `body` is NULL for a GET,
 * `status` may be NULL. */
json_t *wlb_api_request(struct wlb_connection *connection, const char *method, const char *path, const json_t *body,
                        int timeout_ms, int *status, struct wlb_error *error);

/* Returns a connection to the configured coordinator, which wlb_connection_free frees; NULL with the message. */
struct wlb_connection *wlb_api_open(struct wlb_error *error);

/* Sends one GET on a connection of its own to the configured coordinator. */
json_t *wlb_api_get(const char *path, struct wlb_error *error);
/* The same for one POST. */
json_t *wlb_api_post(const char *path, const json_t *body, struct wlb_error *error);

/* Appends "KEY=VALUE" to a path's query, VALUE escaped; the first after '?', the next after '&'. */
void wlb_api_query(char *path, size_t size, const char *key, const char *value);

#endif
