/* The end of the run, for its user and for the coordinator. */
#ifndef COORDINATOR_WLB_RUN_LOOP_FINISH_H
#define COORDINATOR_WLB_RUN_LOOP_FINISH_H

#include "coordinator/wlb/run/loop/next.h"

/* Prints and records how the run ended, for which next_rule.h has the step FINISH. */
void wlb_run_finish(struct wlb_run *run, const struct wlb_turn *turn, const struct wlb_next *next);

#endif
