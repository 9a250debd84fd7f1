/*
 * Who waits for whom. A rank that is blocked in a call waits for the members of its group that have not entered that
 * call; they may be blocked in calls of other groups in turn, across tensor, context, pipeline and data parallelism. At
 * the end of each chain are ranks outside communication, or a call that all members have entered. Internal.
 */
#ifndef LIBVERDICT_WAIT_FOR_H
#define LIBVERDICT_WAIT_FOR_H

#include "libverdict/detector_state.h"

/* Finds it from the newest states. */
void verdict_waits_find(struct wlb_verdict_detector *detector);

/* 1 where the rank is blocked in a call. */
int verdict_is_calling(const struct verdict_rank *rank);

/* How long the rank has made no progress, and its last report was, in the job's time. */
double verdict_stuck_s(const struct wlb_verdict_detector *detector, int32_t rank);
double verdict_silent_s(const struct wlb_verdict_detector *detector, int32_t rank);

/* Returns the number of ranks that are blocked in calls. */
int32_t verdict_count_calling(const struct wlb_verdict_detector *detector);

/* Returns a member of the group of the call in which `rank` is blocked that has not entered it, -1 where all have. */
int32_t verdict_waits_for(const struct wlb_verdict_detector *detector, int32_t rank);

#endif
