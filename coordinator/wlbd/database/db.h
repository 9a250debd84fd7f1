/*
 * PostgreSQL without blocking: one connection in pipeline mode on the event loop.
 *
 * A call is one statement and its own transaction; `done` comes once it is committed. Nothing waits for a database
 * that is away: the call is answered AWAY at once, and the connection is sought again in the background.
 */
#ifndef COORDINATOR_WLBD_DATABASE_DB_H
#define COORDINATOR_WLBD_DATABASE_DB_H

#include <event2/event.h>
#include <stdbool.h>

#include "coordinator/wlbd/database/params.h"
#include "libwlb/wlb.h"

struct wlbd_db;

enum wlbd_db_status {
	WLBD_DB_OK,
	WLBD_DB_REFUSED, /* the statement failed: asking again would fail again */
	WLBD_DB_AWAY,    /* not done, or not known to be done */
	WLBD_DB_SLOW,    /* not done: it ran into its limit, waited for a lock, or too many were before it */
};

struct wlbd_db_result {
	enum wlbd_db_status status;
	const char *value;   /* OK: first column of the first row; NULL for SQL's null or no row */
	int http_status;     /* else: 503, 500, or what the schema's functions raise (WL403, ...) */
	const char *message; /* else: one line */
};

/* The result is valid during the call only. */
typedef void wlbd_db_done(void *context, const struct wlbd_db_result *result);

struct wlbd_db_hooks {
	void (*ready)(void *context);                                       /* connected, and the schema is ours */
	void (*away)(void *context, const char *reason);                    /* lost, or still not found */
	void (*wrong_schema)(void *context, const struct wlb_error *error); /* will not serve with this one */
	void *context;
};

/* Begins to connect. The server cancels a statement after timeout_ms, and one that waits for a lock after half of that:
 * the connection stays. It is given up when no answer comes for a second more. */
struct wlbd_db *wlbd_db_new(struct event_base *base, const char *conninfo, int timeout_ms,
                            const struct wlbd_db_hooks *hooks, struct wlb_error *error);
/* Closes the connection: calls under way, and all that come, are answered AWAY. NULL allowed. */
void wlbd_db_stop(struct wlbd_db *db);
void wlbd_db_free(struct wlbd_db *db); /* calls under way are forgotten; NULL allowed */

/* Ends the connection, which must have no call under way, and makes it anew; until then the database is away. */
void wlbd_db_renew(struct wlbd_db *db);

bool wlbd_db_ready(const struct wlbd_db *db);
const char *wlbd_db_reason(const struct wlbd_db *db); /* why it is not ready; "" when it is */

/* `params` are copied. `done` is called once, before this returns where the database is away; it may be NULL. */
void wlbd_db_call(struct wlbd_db *db, const char *sql, const struct wlbd_params *params, wlbd_db_done *done,
                  void *context);

#endif
