/*
 * The lease of two wlbd that share a database: one acts, the other stands by and takes the lease once it is over.
 *
 * The database has the number of the term and that of renewals (sql/functions/coordinator.sql). The wlbd that acts
 * renews its lease every quarter of lease_ms, and acts for lease_ms from the moment that it asked for the last renewal
 * which was granted, by its own clock. The other takes the lease when it has seen the same numbers for a second longer
 * than that, by its own clock, counted from an answer: so the lease is over by then, whatever both clocks say of the
 * time. The advisory lock of the database belongs to the session of the lease. That of a wlbd that is frozen or cut off
 * keeps the lock, and is ended by the other; and so are all sessions of terms before, so that nothing of the old one is
 * stored any more when the new one reads what there is.
 *
 * At the end of the lease the process starts again and stands by (lease_end.h). Before each order to Slurm a renewal is
 * asked for: a clock that stood still with its virtual machine cannot tell that the lease is over.
 */
#ifndef COORDINATOR_WLBD_DATABASE_LEASE_H
#define COORDINATOR_WLBD_DATABASE_LEASE_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "coordinator/wlbd/config.h"
#include "libwlb/wlb.h"

struct wlbd_lease;

struct wlbd_lease_hooks {
	void (*begin)(void *context, int64_t term); /* this wlbd acts, in its first term; called once */
	void (*wrong_schema)(void *context, const struct wlb_error *error);
	void *context;
};

/* Begins to ask for the lease of config->database, on a connection of its own; `address` is where this wlbd listens.
 * Returns NULL if out of memory or of threads. */
struct wlbd_lease *wlbd_lease_new(struct event_base *base, const struct wlbd_config *config, const char *address,
                                  const struct wlbd_lease_hooks *hooks, struct wlb_error *error);
/* Gives the lease back first, where the database answers soon, so that the other need not wait for its end. All other
 * connections to the database are closed, and nothing is ordered any more. NULL is allowed. */
void wlbd_lease_free(struct wlbd_lease *lease);

/* Who waits for a renewal; a member of the caller's own struct. */
struct wlbd_lease_waiter {
	TAILQ_ENTRY(wlbd_lease_waiter) link;
	/* From the event loop, once. `renewed`: this wlbd acts, by an answer of the database to a question that was
	 * asked after the waiter came; else wlbd is stopping. */
	void (*done)(void *context, bool renewed);
	void *context;
};

void wlbd_lease_wait(struct wlbd_lease *lease, struct wlbd_lease_waiter *waiter);
/* Nobody waits any more: all are told that wlbd is stopping, at once. NULL is allowed. */
void wlbd_lease_stop(struct wlbd_lease *lease);

/* Where the wlbd that acts listens, as far as is known; "": none does. */
const char *wlbd_lease_address(const struct wlbd_lease *lease);
/* Why the database does not answer, in words for clients; "": it does. */
const char *wlbd_lease_reason(const struct wlbd_lease *lease);

#endif
