/*
 * What wlbd itself found out (faults, ended attempts, events) on its way to PostgreSQL: sent at once, and again after
 * the database was away. Every statement is one that may be repeated. Those of a run go in order. A statement that the
 * database refuses, or cancels by its limit three times, is set aside: it is logged and counted, and does not delay the
 * next.
 */
#ifndef COORDINATOR_WLBD_DATABASE_OUTBOX_H
#define COORDINATOR_WLBD_DATABASE_OUTBOX_H

#include <stdint.h>

#include "coordinator/wlbd/database/db.h"

struct wlbd_outbox;

/* *set_aside is counted up. NULL without memory. */
struct wlbd_outbox *wlbd_outbox_new(struct event_base *base, struct wlbd_db *db, uint64_t *set_aside);
void wlbd_outbox_free(struct wlbd_outbox *outbox);

/* `params` are copied; `sql` has static lifetime. What cannot be kept is counted and logged. */
void wlbd_outbox_put(struct wlbd_outbox *outbox, int64_t run_pk, const char *sql, const struct wlbd_params *params);

/* Whether something of this run has not been stored yet. */
bool wlbd_outbox_holds(const struct wlbd_outbox *outbox, int64_t run_pk);

/* The database is back. */
void wlbd_outbox_resume(struct wlbd_outbox *outbox);

#endif
