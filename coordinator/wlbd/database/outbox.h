/*
 * Statements that store what wlbd found out (faults, ended attempts, events): each is sent at once, and again after the
 * database did not answer. So every statement may be repeated. The statements of a run are stored in order. A statement
 * that the database refuses, or that fails three times because it takes too long or the database is damaged, is
 * dropped: it is logged and counted, and the next one is sent. It is no failed try where too many other statements wait
 * for the database. Nor is it one where the server cannot do the statement now; statements of other runs are sent
 * meanwhile.
 */
#ifndef COORDINATOR_WLBD_DATABASE_OUTBOX_H
#define COORDINATOR_WLBD_DATABASE_OUTBOX_H

#include <stdint.h>
#include <sys/types.h>

#include "coordinator/wlbd/database/db.h"

struct wlbd_outbox;

/* *dropped is increased for each statement that is dropped. Returns NULL if out of memory. */
struct wlbd_outbox *wlbd_outbox_new(struct event_base *base, struct wlbd_db *db, uint64_t *dropped);
void wlbd_outbox_free(struct wlbd_outbox *outbox); /* logs what is not stored; NULL is allowed */

/* `params` are copied; `sql` has static lifetime; `uid` is the run's owner. A statement is dropped for which there is
 * no memory, or where too many wait: of all, of the run, or of the owner (coordinator/wlbd/budget.h), who has half of
 * all at most. */
void wlbd_outbox_put(struct wlbd_outbox *outbox, uid_t uid, int64_t run_pk, const char *sql,
                     const struct wlbd_params *params);

/* Whether statements of this run are not stored yet. */
bool wlbd_outbox_holds(const struct wlbd_outbox *outbox, int64_t run_pk);

int wlbd_outbox_count(const struct wlbd_outbox *outbox); /* of all runs */

/* The database answers again. */
void wlbd_outbox_resume(struct wlbd_outbox *outbox);

#endif
