/*
 * PostgreSQL without blocking: one connection in pipeline mode on the event loop.
 *
 * Each statement is a transaction of its own; `done` is called after the commit. Without a connection a statement is
 * answered UNAVAILABLE at once, and the connection is retried in the background.
 */
#ifndef COORDINATOR_WLBD_DATABASE_DB_H
#define COORDINATOR_WLBD_DATABASE_DB_H

#include <event2/event.h>
#include <stdbool.h>

#include "coordinator/wlbd/database/db_server.h"
#include "coordinator/wlbd/database/params.h"
#include "libwlb/wlb.h"

struct wlbd_db;

enum wlbd_db_status {
	WLBD_DB_OK,
	WLBD_DB_REFUSED,     /* the statement failed, and would fail again */
	WLBD_DB_UNAVAILABLE, /* there is no connection: not done, or not known to be done; or the server cannot do it
	                        now */
	WLBD_DB_DAMAGED,     /* not done: data or an index of the database is damaged */
	WLBD_DB_SLOW,        /* not done: it took too long, or waited too long for a lock */
	WLBD_DB_BUSY,        /* not sent: too many statements wait */
};

struct wlbd_db_result {
	enum wlbd_db_status status;
	const char *value;   /* OK: the first column of the first row; NULL: SQL's null, or no row */
	int http_status;     /* else: 503, 500, or the status that the schema's functions raise (WL403, ...) */
	const char *message; /* else: one line, of wlbd's and the schema's own words, which clients may see */
	const char *detail;  /* else: the same for wlbd's log, with the words of the server */
};

/* The result is valid until it returns. */
typedef void wlbd_db_done(void *context, const struct wlbd_db_result *result);

/* Called from the event loop; all but `wrong_schema` may be NULL. */
struct wlbd_db_hooks {
	void (*ready)(void *context); /* connected, and the schema is the right one */
	/* The connection was lost, or could not be made. `detail` is for the log: it has libpq's words. */
	void (*unavailable)(void *context, const char *detail);
	void (*wrong_schema)(void *context, const struct wlb_error *error); /* the connection is not used */
	void (*not_stored)(void *context); /* the server answers, and could not carry out a statement: its disk is full,
	                                      it is read-only, ... */
	void *context;
};

/* Begins to connect to `server`, which must outlive it. A try, with the look-up of the host's name, may take
 * timeout_ms. The server cancels a statement after timeout_ms, and one that waits for a lock after half of that; the
 * connection stays. It is closed and made again where no answer arrives for a second more. Returns NULL if out of
 * memory. */
struct wlbd_db *wlbd_db_new(struct event_base *base, struct wlbd_db_server *server, int timeout_ms,
                            const struct wlbd_db_hooks *hooks, struct wlb_error *error);
/* Closes the connection: statements under way and later ones are answered UNAVAILABLE. NULL is allowed. */
void wlbd_db_stop(struct wlbd_db *db);
void wlbd_db_free(struct wlbd_db *db); /* `done` of statements under way is not called; NULL is allowed */

/* Closes the connection, which must have no statement under way, and makes it again. */
void wlbd_db_renew(struct wlbd_db *db);

bool wlbd_db_ready(const struct wlbd_db *db);
const char *wlbd_db_reason(const struct wlbd_db *db); /* why it is not ready, in words for clients; "": it is */
/* As wlb_encoding_check, of the database of a connection that is ready. */
int wlbd_db_encoding_check(const struct wlbd_db *db, struct wlb_error *error);

/* `params` are copied. `done` is called once, before this returns where the database is unavailable; it may be NULL. */
void wlbd_db_execute(struct wlbd_db *db, const char *sql, const struct wlbd_params *params, wlbd_db_done *done,
                     void *context);

/* As wlbd_db_execute, for a caller that has one statement under way at most: it is never answered BUSY, however many
 * others wait. */
void wlbd_db_execute_reserved(struct wlbd_db *db, const char *sql, const struct wlbd_params *params, wlbd_db_done *done,
                              void *context);

#endif
