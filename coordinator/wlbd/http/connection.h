/*
 * The connections of clients. A connection is unproved until a credential on it was accepted: of these the number is
 * limited, and the oldest that waits for no answer is closed for a new one. A connection that completes no
 * request within max_ms is closed, so that a client that sends a byte at a time does not hold it for ever.
 */
#ifndef COORDINATOR_WLBD_HTTP_CONNECTION_H
#define COORDINATOR_WLBD_HTTP_CONNECTION_H

#include <event2/event.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "coordinator/wlbd/budget.h"

struct wlbd_connection;
struct wlbd_connections;

/* `budget` must live longer. Returns NULL if out of memory. */
struct wlbd_connections *wlbd_connections_new(struct event_base *base, struct wlbd_budget *budget, int max_ms,
                                              int unproved_max);
void wlbd_connections_free(struct wlbd_connections *connections); /* after all are closed; NULL is allowed */

/* Returns NULL if out of memory. */
struct wlbd_connection *wlbd_connection_opened(struct wlbd_connections *connections, int fd);
void wlbd_connection_closed(struct wlbd_connection *connection); /* calls the callback, and frees the connection */

/* A credential of `uid` was accepted on it. Returns WLBD_BUDGET_TAKEN, or else the user, or all users
 * together, have too many connections. */
enum wlbd_budget_answer wlbd_connection_proved(struct wlbd_connection *connection, uid_t uid);

/* Whether wlbd itself closes it, since its client has completed no request for too long, or for a new connection. */
bool wlbd_connection_was_given_up(const struct wlbd_connection *connection);

/* Sends the whole text of a reply, as far as the kernel takes it at once, and closes the connection. */
void wlbd_connection_refuse(struct wlbd_connection *connection, const char *reply);

/* Reads the address of the client. Returns -1 where it is not known. */
int wlbd_connection_peer(const struct wlbd_connection *connection, struct sockaddr_storage *peer);

/* munged is asked about the credential of a request; ends with the request's answer, or when the connection is proved.
 */
void wlbd_connection_begin_check(struct wlbd_connection *connection);

/* `busy`: a request was read whole, and not answered yet; its connection is not closed meanwhile. */
void wlbd_connection_set_busy(struct wlbd_connection *connection, bool busy);

/* `callback` is called once, when the connection ends; NULL: no callback. */
void wlbd_connection_on_close(struct wlbd_connection *connection,
                              void (*callback)(struct wlbd_connection *connection, void *context), void *context);

#endif
