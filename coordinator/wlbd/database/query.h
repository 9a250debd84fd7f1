/*
 * A statement that a user has written, on a connection of its own.
 *
 * What it can do is bounded several times over, since none of the bounds alone is enough:
 * - It runs as a login that can select from the views and nothing else, which is checked each time.
 * - PostgreSQL parses it as one statement; it is then made a subquery, which only reads, in a read-only transaction.
 * - Words that name functions with side effects, functions that are not PostgreSQL's own, and its catalogs are refused:
 *   any login may call pg_sleep, take advisory locks, and end the statements of its own sessions.
 * - Rows are cut by the server, and counted here; this process holds WLBD_QUERY_BYTES_MAX and one row.
 * - The clock of this process ends it; the server's own limit does so later.
 * It can take memory of the server for as long as it runs.
 */
#ifndef COORDINATOR_WLBD_DATABASE_QUERY_H
#define COORDINATOR_WLBD_DATABASE_QUERY_H

#include <stdbool.h>

#include "libwlb/wlb.h"

enum {
	WLBD_QUERY_SQL_MAX = 16 << 10,
	WLBD_QUERY_COLUMNS_MAX = 100,
	WLBD_QUERY_ROWS_MAX = 10000,
	WLBD_QUERY_ROW_BYTES_MAX = 1 << 20,
	WLBD_QUERY_BYTES_MAX = 8 << 20,
};

struct wlbd_query {
	const char *conninfo;    /* of the login; outlives the query */
	char *sql;               /* UTF-8; the caller's */
	int limit_ms;            /* from its begin to its end, the connection included */
	const _Atomic bool *end; /* it is set to have the query end soon */
	char *reply; /* {"columns":[...],"rows":[[...]],"is_cut":false}, which the caller frees; NULL: refused */
	int status;  /* HTTP's, where it is refused */
	struct wlb_error error; /* why, for the user */
	char detail[512];       /* the same in libpq's words, for the log; "": nothing more */
};

/* Blocks until the query is done or its time is over. Names of hosts are looked up as libpq does, without a bound. */
void wlbd_query_run(struct wlbd_query *query);

#endif
