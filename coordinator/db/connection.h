/* A connection to the database for the commands of an administrator. These calls block, and their messages are one
 * line. */
#ifndef COORDINATOR_DB_CONNECTION_H
#define COORDINATOR_DB_CONNECTION_H

#include <libpq-fe.h>

#include "libwlb/wlb.h"

/* Returns a connection, which the caller ends with PQfinish; NULL with libpq's message. */
PGconn *wlb_db_connect(const char *conninfo, struct wlb_error *error);

/* Sets `error` to "WHAT: MESSAGE" of a result that failed; returns -1. */
int wlb_db_fail(const PGresult *result, const char *what, struct wlb_error *error);

/* Makes one line of a message; returns -1. `error` may be NULL. */
int wlb_db_fail_line(struct wlb_error *error);

/* Executes a statement with `count` parameters, as texts. Returns its result, which the caller clears; NULL on failure.
 */
PGresult *wlb_db_call(PGconn *connection, const char *sql, int count, const char *const *values,
                      struct wlb_error *error);

#endif
