/* Events of a run that its launcher records. */
#ifndef COORDINATOR_WLB_RUN_RECORD_EVENT_H
#define COORDINATOR_WLB_RUN_RECORD_EVENT_H

#include "coordinator/client/reporter.h"

/* Records an event of the attempt (docs/api.md has the kinds). Nothing happens without a reporter, NULL. */
void wlb_run_record_event(struct wlb_reporter *reporter, const char *kind, const char *detail);
/* The same for one that happened at an earlier time, in seconds since 1970. */
void wlb_run_record_event_of(struct wlb_reporter *reporter, const char *kind, const char *detail, double time_s);

#endif
