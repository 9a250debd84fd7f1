/*
 * Whether this wlbd alone uses its database. Each wlbd holds an advisory lock on its connection. A wlbd that does not
 * get the lock warns, and serves all the same: the session of a host that died keeps the lock until the server notices.
 */
#ifndef COORDINATOR_WLBD_DATABASE_SOLE_USE_H
#define COORDINATOR_WLBD_DATABASE_SOLE_USE_H

#include "coordinator/wlbd/database/db.h"

struct wlbd_sole_use;

/* Returns NULL if out of memory. */
struct wlbd_sole_use *wlbd_sole_use_new(struct event_base *base, struct wlbd_db *db);
/* No statement is under way. NULL is allowed. */
void wlbd_sole_use_free(struct wlbd_sole_use *use);

/* `db` is connected: the lock of an earlier connection is gone. */
void wlbd_sole_use_connected(struct wlbd_sole_use *use);

/* Where the other one is connected from, and since when; "": none is known. */
const char *wlbd_sole_use_other(const struct wlbd_sole_use *use);

#endif
