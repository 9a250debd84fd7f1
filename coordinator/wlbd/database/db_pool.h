/*
 * Several connections to PostgreSQL for statements that take long: a slow statement delays other statements of its
 * owner (a user) only.
 *
 * A statement waits until a connection is free. The next to be sent is the oldest of the owner with the fewest under
 * way; an owner never has all connections. Statements with the same key are sent one after the other, in order of
 * arrival.
 */
#ifndef COORDINATOR_WLBD_DATABASE_DB_POOL_H
#define COORDINATOR_WLBD_DATABASE_DB_POOL_H

#include <stdint.h>
#include <sys/types.h>

#include "coordinator/wlbd/database/db.h"

struct wlbd_db_pool;

enum { WLBD_DB_POOL_CONNECTIONS = 4 };

/* `server` and timeout_ms as in wlbd_db_new. Of `hooks`, wrong_schema is called, and not_stored: also while
 * no connection can be made. Returns NULL if out of memory. */
struct wlbd_db_pool *wlbd_db_pool_new(struct event_base *base, struct wlbd_db_server *server, int timeout_ms,
                                      const struct wlbd_db_hooks *hooks, struct wlb_error *error);
void wlbd_db_pool_stop(struct wlbd_db_pool *pool); /* as wlbd_db_stop; NULL is allowed */
void wlbd_db_pool_free(struct wlbd_db_pool *pool); /* as wlbd_db_free; NULL is allowed */

/* A pool whose statements are sent over `db`, which must live longer. The pool sends at most WLBD_DB_POOL_CONNECTIONS
 * statements at a time, so that statements from elsewhere on `db` wait for few. Returns NULL if out of memory. */
struct wlbd_db_pool *wlbd_db_pool_new_over(struct wlbd_db *db, struct wlb_error *error);

bool wlbd_db_pool_ready(const struct wlbd_db_pool *pool); /* at least one connection is */

/* As wlbd_db_execute. A statement is answered BUSY after it has waited for 10 s, and at once where too many wait, of
 * its owner or in all (coordinator/wlbd/budget.h). key 0: in no order. */
void wlbd_db_pool_execute(struct wlbd_db_pool *pool, uid_t owner, uint64_t key, const char *sql,
                          const struct wlbd_params *params, wlbd_db_done *done, void *context);

#endif
