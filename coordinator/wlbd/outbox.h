/*
 * What wlbd itself found out (faults, ended attempts, events) on its way to PostgreSQL: sent at once, and again, in
 * order, after the database was away. Every statement is one that may be repeated.
 */
#ifndef WLBD_OUTBOX_H
#define WLBD_OUTBOX_H

#include "coordinator/wlbd/db.h"

struct wlbd_outbox;

struct wlbd_outbox *wlbd_outbox_new(struct wlbd_db *db);
void wlbd_outbox_free(struct wlbd_outbox *outbox);

/* `params` are copied. */
void wlbd_outbox_put(struct wlbd_outbox *outbox, const char *sql, int count, const char *const *params);

bool wlbd_outbox_empty(const struct wlbd_outbox *outbox);

/* The database is back. */
void wlbd_outbox_resume(struct wlbd_outbox *outbox);

#endif
