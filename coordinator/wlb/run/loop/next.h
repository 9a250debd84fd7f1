/* What this `wlb run` does next, by what is known of it (next_rule.h). */
#ifndef COORDINATOR_WLB_RUN_LOOP_NEXT_H
#define COORDINATOR_WLB_RUN_LOOP_NEXT_H

#include "coordinator/wlb/run/rules/next_rule.h"
#include "coordinator/wlb/run/state/state.h"

/* `last`: the last attempt of this start of the job, NULL before the first has ended. Asks Slurm for the job's end now
 * and then. */
struct wlb_next wlb_run_next(struct wlb_run *run, const struct wlb_attempt *last, enum wlb_answer answer);

#endif
