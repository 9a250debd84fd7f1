/*
 * The server of the database, for all connections to it: its connection string, and its addresses.
 *
 * Names are looked up on a thread of the database's own. libpq does that on the thread that connects, which is the
 * event loop: a name server that hangs would stop wlbd at every try. Nor do they wait for the thread that resolves
 * nodes, whose name server may hang while the database's answers.
 */
#ifndef COORDINATOR_WLBD_DATABASE_DB_SERVER_H
#define COORDINATOR_WLBD_DATABASE_DB_SERVER_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "coordinator/wlbd/database/db_hosts.h"
#include "libwlb/wlb.h"

struct wlbd_db_server;

/* A connection that waits for the addresses; a member of the caller's own struct. */
struct wlbd_db_waiter {
	TAILQ_ENTRY(wlbd_db_waiter) link;
	/* From the event loop. `hosts` is what the connection string says otherwise or not at all, for libpq, and valid
	 * during the call only; NULL: `error` says which host cannot be resolved, and why. */
	void (*done)(void *context, const struct wlbd_db_hosts *hosts, const struct wlb_error *error);
	void *context;
	bool is_waiting; /* set by this unit */
};

/* Copies conninfo, and starts the thread. Returns NULL if out of memory or of threads. */
struct wlbd_db_server *wlbd_db_server_new(struct event_base *base, const char *conninfo, struct wlb_error *error);

/* No connection uses it any more, and none waits. A look-up that hangs is not waited for: its thread ends later, and
 * touches its own memory only. NULL is allowed. */
void wlbd_db_server_free(struct wlbd_db_server *server);

const char *wlbd_db_server_conninfo(const struct wlbd_db_server *server); /* lives as long as the server */

/* Connections that are made from now on are of this term of a lease (lease.h): they are refused once it is over. 0, as
 * at first: of none. */
void wlbd_db_server_set_term(struct wlbd_db_server *server, int64_t term);
int64_t wlbd_db_server_term(const struct wlbd_db_server *server);

/* The hosts that are being looked up, as a list with commas; "": none. Valid until the event loop goes on. */
const char *wlbd_db_server_asked(const struct wlbd_db_server *server);

/* Calls `done` once: before this returns where there is no name to look up, else later. At most one look-up is under
 * way, and all who wait when it ends get its answer: so a thread that hangs has nothing queued behind it. */
void wlbd_db_server_find(struct wlbd_db_server *server, struct wlbd_db_waiter *waiter);

/* `done` is not called any more. The waiter need not wait. */
void wlbd_db_server_forget(struct wlbd_db_server *server, struct wlbd_db_waiter *waiter);

#endif
