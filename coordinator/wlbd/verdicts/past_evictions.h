/*
 * The nodes that earlier attempts of a run evicted, as PostgreSQL has them. The number of excluded nodes is limited
 * (rules/evictions.h): at the limit, each further eviction would bring an evicted node back into use.
 */
#ifndef COORDINATOR_WLBD_VERDICTS_PAST_EVICTIONS_H
#define COORDINATOR_WLBD_VERDICTS_PAST_EVICTIONS_H

#include "coordinator/wlbd/attempts/attempts.h"
#include "coordinator/wlbd/rules/evictions.h"

/* Reads what wlb_run_evictions of the schema returns, the newest first. Returns their number; the names live as long as
 * `list`. */
int wlbd_past_evictions_read(const json_t *list, struct wlbd_past_eviction evictions[WLBD_EVICTIONS_MAX]);

/* Asks the database, once for each attempt; sets attempt->excluded when it answers. */
void wlbd_past_evictions_ask(struct wlbd_attempt *attempt);

/* Sets attempt->excluded from that list. */
void wlbd_past_evictions_set(struct wlbd_attempt *attempt, const json_t *list);

/* Whether as many nodes are excluded as may be, or as the run can do without: it already uses an evicted node again. */
bool wlbd_past_evictions_at_limit(const struct wlbd_attempt *attempt);

#endif
