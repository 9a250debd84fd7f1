/* How long a rank may stay in an activity: three times the longest healthy stay that was seen. Internal. */
#ifndef LIBVERDICT_BOUNDS_H
#define LIBVERDICT_BOUNDS_H

#include "libverdict/detector_state.h"

/* Takes what is known of the steps before the detector was made. */
void verdict_bounds_init(struct wlb_verdict_detector *detector);

/* 1 where a time since then, of the job's time, is no healthy one: a hang was confirmed in it. Ranks report that they
 * go on one after the other, when the verdict may have ended. */
int verdict_has_stood_still(const struct wlb_verdict_detector *detector, double since_job_s);

/* Learns from a stay of `seconds` that has ended. */
void verdict_bounds_learn(struct wlb_verdict_detector *detector, const struct verdict_rank *rank, double seconds);

/* Learns from calls that each took `call_s`, and that ended at `ended_job_s` after ranks had been in them for
 * `waited_s` at most. A call long enough to be suspected counts when a second one has followed it, since a network that
 * fails for some seconds makes one long call, or several at once; the shorter of the two counts then. */
void verdict_bounds_learn_call(struct wlb_verdict_detector *detector, double ended_job_s, double waited_s,
                               double call_s);

/* Learns from a call of group g that all members had entered at `since_job_s` and that the last of them left `seconds`
 * later, as verdict_bounds_learn_call does; at once in the last of the first steps. It teaches nothing where a signal
 * has stopped a member meanwhile, or a member is gone. The call may have ended at any time between two reports of a
 * member. Where the two reports are more than some seconds apart, the time between them is not counted. */
void verdict_bounds_learn_transfer(struct wlb_verdict_detector *detector, int32_t g, double since_job_s,
                                   double seconds);

/* The bound for the activity that the rank is in, at least `least_s`. Computation of a step with k times the usual
 * predicted work has k times the bound. Start-up, the first steps, checkpoints and evaluations have a bound of
 * patience_s at least. */
double verdict_bound_s(const struct wlb_verdict_detector *detector, const struct verdict_rank *rank, double least_s);

/* The bound for a call that all members have entered. */
double verdict_bound_transfer_s(const struct wlb_verdict_detector *detector, double least_s);

/* How many times the usual predicted work the rank's step has; at least 1. */
double verdict_work_times(const struct verdict_rank *rank);

/* 1 while the rank is in start-up or its first steps. */
int verdict_in_warm_up(const struct wlb_verdict_detector *detector, const struct verdict_rank *rank);

#endif
