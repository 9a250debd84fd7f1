/* What this `wlb run` does next, by what is known of it (next_rule.h). */
#ifndef COORDINATOR_WLB_RUN_LOOP_NEXT_H
#define COORDINATOR_WLB_RUN_LOOP_NEXT_H

#include "coordinator/wlb/run/rules/next_rule.h"
#include "coordinator/wlb/run/state/state.h"
#include "libwlb/wlb.h"

/* From the end of one attempt to the end of the next. Starts zeroed. */
struct wlb_turn {
	struct wlb_attempt last;            /* of this start of the job; id "": none has ended */
	struct wlb_attempt next;            /* that is being decided */
	enum wlb_answer answer;             /* of the coordinator, since the last one ended */
	char state[32];                     /* of the run, by the coordinator's decision */
	int failures;                       /* attempts that have failed, in this start of the job */
	bool is_not_started;                /* the attempt that was decided */
	bool requeue_failed, growth_failed; /* next_rule.h */
	struct wlb_error error;             /* of what was tried last */
};

/* Returns NULL before the first attempt of this start of the job has ended. */
static inline const struct wlb_attempt *wlb_turn_last(const struct wlb_turn *turn)
{
	return turn->last.id[0] != '\0' ? &turn->last : NULL;
}

/* Asks Slurm for the job's end now and then. */
struct wlb_next wlb_run_next(struct wlb_run *run, const struct wlb_turn *turn);

#endif
