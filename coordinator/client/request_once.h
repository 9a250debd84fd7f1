/* One request to the configured coordinator, on a connection of its own. */
#ifndef COORDINATOR_CLIENT_REQUEST_ONCE_H
#define COORDINATOR_CLIENT_REQUEST_ONCE_H

#include "coordinator/client/config.h"

/* method: "GET" or "POST"; body: NULL where it has none. Returns the body of a reply with status 200, which the caller
 * frees; NULL with the reason, in the coordinator's words where it sent any. All of it ends within timeout_ms. */
char *wlb_client_request_once(const struct wlb_client_config *config, const char *method, const char *path,
                              const char *body, int timeout_ms, struct wlb_error *error);

#endif
