/* How an attempt ended: from what its srun has written, which first_exit.h reads, and from who has ended it. No I/O. */
#ifndef COORDINATOR_WLB_RUN_ATTEMPT_ATTEMPT_END_H
#define COORDINATOR_WLB_RUN_ATTEMPT_ATTEMPT_END_H

#include <stdbool.h>

#include <jansson.h>

#include "coordinator/wlb/run/rules/first_exit.h"
#include "coordinator/wlb/run/state/state.h"

struct wlb_attempt_end_facts {
	const struct wlb_first_exit_scan *scan;
	double launch_failed_s;                    /* since 1970, of scan->launch */
	const struct wlb_run_slurm_end *slurm_end; /* that was sent to the coordinator */
};

/* Whether none of the tasks could execute the command. On a single node of several this may be the node's fault. */
bool wlb_attempt_end_is_refused(const struct wlb_run *run, const struct wlb_attempt *attempt,
                                const struct wlb_first_exit_scan *scan);

/* Finds what ended the attempt first: sets its exit_code, which is srun's before, its end_reason where it has none, and
 * no_step, is_slurmctld_unavailable, is_refused, first_exit and launch_failure. */
void wlb_attempt_end_find(const struct wlb_run *run, struct wlb_attempt *attempt,
                          const struct wlb_attempt_end_facts *facts);

/* Gives the attempt a reason where it still has none, once it is known whether it has saved and stopped: Slurm, with
 * its slurm_end, else the last error of srun. */
void wlb_attempt_end_explain(struct wlb_attempt *attempt, const struct wlb_attempt_end_facts *facts);

/* Adds to `object` what ended the attempt, as far as it is known: "first_exit" {"rank":5,"node":"n3","signal":9}
 * when a task was killed, "launch_failure" {"node":"n3","why":"...","time":...} when a node did not launch its tasks,
 * "srun_signal" when srun was killed. */
void wlb_attempt_end_put(const struct wlb_run *run, const struct wlb_attempt *attempt, json_t *object);

/* Adds "error", the line of the exception that was first, where one was found. */
void wlb_attempt_error_put(const struct wlb_attempt *attempt, json_t *object);

#endif
