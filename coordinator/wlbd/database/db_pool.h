/*
 * Several connections to PostgreSQL for statements that take a while: a slow one delays what its own user asks, and
 * nobody else.
 *
 * A statement waits until a connection is free. The next to go is the oldest of the owner who has fewest under way; an
 * owner never has all connections. Statements with the same key go one after the other, in the order they came.
 */
#ifndef COORDINATOR_WLBD_DATABASE_DB_POOL_H
#define COORDINATOR_WLBD_DATABASE_DB_POOL_H

#include <stdint.h>
#include <sys/types.h>

#include "coordinator/wlbd/database/db.h"

struct wlbd_db_pool;

enum { WLBD_DB_POOL_CONNECTIONS = 4 };

/* timeout_ms is that of each connection: wlbd_db_new. Of `hooks` only wrong_schema is called. */
struct wlbd_db_pool *wlbd_db_pool_new(struct event_base *base, const char *conninfo, int timeout_ms,
                                      const struct wlbd_db_hooks *hooks, struct wlb_error *error);
void wlbd_db_pool_stop(struct wlbd_db_pool *pool); /* as wlbd_db_stop; NULL allowed */
void wlbd_db_pool_free(struct wlbd_db_pool *pool); /* calls under way are forgotten; NULL allowed */

bool wlbd_db_pool_ready(const struct wlbd_db_pool *pool); /* one connection at least is */

/* As wlbd_db_call. SLOW for one that waits for more than 10 s, and, when too many wait, for the newest of the owner who
 * has most waiting. key 0: in no order. */
void wlbd_db_pool_call(struct wlbd_db_pool *pool, uid_t owner, uint64_t key, const char *sql,
                       const struct wlbd_params *params, wlbd_db_done *done, void *context);

#endif
