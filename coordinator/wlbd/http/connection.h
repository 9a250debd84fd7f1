/*
 * The connections of clients. Until a credential on it was accepted a connection is unproved: of these there are a
 * limited number, and the oldest is closed for a new one. Every connection must complete a request every so often, or
 * it is closed: a client that sends a byte at a time would hold it for ever otherwise.
 */
#ifndef COORDINATOR_WLBD_HTTP_CONNECTION_H
#define COORDINATOR_WLBD_HTTP_CONNECTION_H

#include <event2/event.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "coordinator/wlbd/http/budget.h"

struct wlbd_connection;
struct wlbd_connections;

/* `budget` outlives it. */
struct wlbd_connections *wlbd_connections_new(struct event_base *base, struct wlbd_budget *budget, int most_ms,
                                              int unproved_most);
void wlbd_connections_free(struct wlbd_connections *connections); /* when all are closed */

struct wlbd_connection *wlbd_connection_opened(struct wlbd_connections *connections, int fd);
void wlbd_connection_closed(struct wlbd_connection *connection); /* calls back, and frees it */

/* A credential of `uid` was accepted on it. Anything but WLBD_BUDGET_TAKEN: the user has too many. */
enum wlbd_budget_answer wlbd_connection_proved(struct wlbd_connection *connection, uid_t uid);

/* The address of the other side; -1: it is unknown. */
int wlbd_connection_peer(const struct wlbd_connection *connection, struct sockaddr_storage *peer);

/* A request was read whole: until its reply the connection is ours to hold. */
void wlbd_connection_busy(struct wlbd_connection *connection, bool busy);

/* `callback` is called once, when the connection ends; NULL: no longer. */
void wlbd_connection_on_close(struct wlbd_connection *connection,
                              void (*callback)(struct wlbd_connection *connection, void *context), void *context);

#endif
