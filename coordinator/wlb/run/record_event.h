/* What the launcher records of a run. */
#ifndef COORDINATOR_WLB_RUN_RECORD_EVENT_H
#define COORDINATOR_WLB_RUN_RECORD_EVENT_H

#include <jansson.h>

#include "coordinator/client/reporter.h"

/* Records and releases `data` (docs/api.md has the types); NULL: out of memory. Prints what is not recorded. Nothing
 * happens without a reporter, NULL. */
void wlb_run_record(struct wlb_reporter *reporter, const char *type, json_t *data);
/* The same for what happened at an earlier time, in seconds since 1970. */
void wlb_run_record_of(struct wlb_reporter *reporter, const char *type, json_t *data, double time_s);

/* Records an event of the attempt, with a text of any origin. */
void wlb_run_record_event(struct wlb_reporter *reporter, const char *kind, const char *detail);

#endif
