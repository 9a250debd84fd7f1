/* What the launcher records of a run. */
#ifndef COORDINATOR_WLB_RUN_STATE_RECORD_H
#define COORDINATOR_WLB_RUN_STATE_RECORD_H

#include <jansson.h>

#include "coordinator/client/reporter.h"
#include "coordinator/wlb/run/state/state.h"

/* Records and releases `data` (docs/api.md has the types); NULL: out of memory. Prints what is not recorded. Nothing
 * happens without a reporter, NULL. */
void wlb_run_record(struct wlb_reporter *reporter, const char *type, json_t *data);
/* The same for what happened at an earlier time, in seconds since 1970. */
void wlb_run_record_of(struct wlb_reporter *reporter, const char *type, json_t *data, double time_s);

/* Records an event of the attempt, with a text of any origin. */
void wlb_run_record_event(struct wlb_reporter *reporter, const char *kind, const char *detail);

/* Records the layout of an attempt that is planned and began without the coordinator, and the node of each rank. A
 * coordinator that decided on the attempt itself ignores it, and rank 0 of wlb-worker records more (docs/api.md); other
 * trainers record nothing. */
void wlb_run_record_attempt(const struct wlb_run *run, struct wlb_reporter *reporter,
                            const struct wlb_attempt *attempt);

#endif
