/*
 * The client side of wlbd's protocol: one HTTP/1.1 request with a MUNGE credential, under a deadline.
 *
 * Of two coordinators, which share a database, one acts. A request goes to the one that acted at the last request, and
 * at once to the other where that does not answer or says that it stands by; where neither is known to act, each has
 * half of the time. Of that a connection takes 2 s at most.
 *
 * The protocol is docs/api.md. The Slurm plugin links this, so it needs no library but libmunge and nettle.
 * Thread-safe as long as one connection is used by one thread.
 */
#ifndef COORDINATOR_CLIENT_CLIENT_H
#define COORDINATOR_CLIENT_CLIENT_H

#include "coordinator/client/config.h"
#include "coordinator/client/reply.h"
#include "libwlb/wlb.h"

struct wlb_connection; /* kept alive between requests, reconnects by itself */

/* Does not connect yet. Returns NULL if out of memory. */
struct wlb_connection *wlb_connection_new(const struct wlb_client_config *config);
void wlb_connection_free(struct wlb_connection *connection); /* NULL allowed */

/* From now on a call also fails as soon as `fd` (an eventfd, a timerfd) is readable; -1 ends this. */
void wlb_connection_cancel_on(struct wlb_connection *connection, int fd);

/* Sends one request and reads the reply; all of it (resolve, connect, send, receive) ends within timeout_ms. `body` may
 * be NULL. Returns 0 if a reply came, whatever its status, and -1 if none did: the connection is then closed, and the
 * next call opens a new one. A reply to a request below /v1 that is not proved counts as none, and so does that of a
 * wlbd that stands by: it says nothing of the run. The exception is
 * {"order":"continue"} to a report: that reply has `proved` false and acknowledges nothing. A request that failed after
 * it was sent may or may not have been carried out; every POST of the API is idempotent for that reason. */
int wlb_connection_request(struct wlb_connection *connection, const char *method, const char *path, const char *body,
                           int timeout_ms, struct wlb_reply *reply, struct wlb_error *error);

#endif
