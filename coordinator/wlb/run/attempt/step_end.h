/* Ends the step of an attempt, by harder and harder measures while its srun runs, and also where its srun was killed.
 */
#ifndef COORDINATOR_WLB_RUN_ATTEMPT_STEP_END_H
#define COORDINATOR_WLB_RUN_ATTEMPT_STEP_END_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "coordinator/wlb/run/state/state.h"

/* An srun, which leads a process group of its own, and its step. */
struct wlb_srun {
	pid_t pid;
	bool has_step;
	uint32_t step_id;
};

/* Taken already. */
enum wlb_step_end_measure {
	WLB_STEP_END_NOT,
	WLB_STEP_END_GRACE,      /* the tasks may end by themselves */
	WLB_STEP_END_KILLED,     /* the step, by Slurm */
	WLB_STEP_END_TERMINATED, /* srun, by SIGTERM */
	WLB_STEP_END_FORCED,     /* srun, by SIGKILL */
};

struct wlb_step_end {
	enum wlb_step_end_measure measure;
	int64_t next_ms; /* when the next one is taken */
};

/* The measure was taken, and the next one follows after `grace_ms`. */
void wlb_step_end_note(struct wlb_step_end *end, enum wlb_step_end_measure measure, int grace_ms);

/* Takes the next measure. Does nothing before the first, and after the last. */
void wlb_step_end_escalate(struct wlb_step_end *end, uint32_t job_id, const struct wlb_srun *srun);

/* Takes the last measure. */
void wlb_step_end_force(struct wlb_step_end *end, const struct wlb_srun *srun);

/* Ends the step of run->killed_srun, and waits, 15 s at most, until Slurm reports that it is gone: otherwise its ranks
 * would run on beside those of the next attempt. The kill is reported to the coordinator first, so that it does not
 * take the ranks that end here for the cause. */
void wlb_run_end_orphaned_step(struct wlb_run *run);

#endif
