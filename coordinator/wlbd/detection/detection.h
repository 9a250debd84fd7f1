/*
 * Finds the faulty ranks of one attempt: gives what its ranks report to libverdict each second, and keeps the verdicts.
 * No I/O; the memory is charged to the user of the run.
 */
#ifndef COORDINATOR_WLBD_DETECTION_DETECTION_H
#define COORDINATOR_WLBD_DETECTION_DETECTION_H

#include <stdbool.h>

#include "coordinator/wlbd/detection/open_calls.h"
#include "coordinator/wlbd/detection/rank_call.h"
#include "coordinator/wlbd/detection/rank_step.h"
#include "coordinator/wlbd/detection/world.h"

enum { WLBD_VERDICTS_MAX = 64 }; /* that are open at a time, of an attempt */

struct wlbd_found_verdict {
	int64_t number;             /* from 1, of the attempt; the same while the verdict lasts */
	struct wlb_verdict verdict; /* as it was last judged; its node is an index into the attempt's nodes, -1: none */
	char collective[WLBD_ACTIVITY_GROUP_NAME_SIZE]; /* its communicator; "": none */
	int node_of[WLB_VERDICT_RANKS];                 /* of its first ranks */
	bool is_changed; /* it is new, or its stage, number of ranks or cost are others than when this was last set, or
	                  * that is half a minute ago */
	struct {
		int world; /* that found it */
		int64_t at_ms;
		enum wlb_verdict_stage stage;
		int32_t rank_count;
		double cost_percent;
	} reported; /* what it was when is_changed was last set */
};

struct wlbd_detection_limits {
	double hang_after_s; /* a hang is confirmed after this, or three times the longest healthy wait */
	double slow_share;   /* a rank that takes this share longer is slow */
	double known_step_s; /* the length of steps that had ended before the attempt was watched; 0: not known */
};

struct wlbd_detection;

/* Returns NULL if out of memory, or where the user of `activities` has used up what it may hold. */
struct wlbd_detection *wlbd_detection_new(const struct wlbd_activities *activities);
void wlbd_detection_free(struct wlbd_detection *detection); /* NULL allowed */

/* Takes a step that a rank has ended. A step that makes no sense, or that is reported before the ranks are known,
 * changes nothing. `detection` may be NULL. */
void wlbd_detection_take_step(struct wlbd_detection *detection, const struct wlbd_rank_step *step);
/* The same of a call. */
void wlbd_detection_take_call(struct wlbd_detection *detection, const struct wlbd_rank_call *call);

/* Returns how much later than the other members of its communicators the rank enters calls, in the mean of the last
 * ones; NaN: not known. `detection` may be NULL. */
double wlbd_detection_late_s(const struct wlbd_detection *detection, int rank);

/* Takes the reports that have arrived since the last call, and judges. The ranks, their layout and the limits may have
 * changed since then: what was known of steps is lost then, and verdicts that were open are over. Returns the verdicts
 * that are open, or over since this judgement, and their number. */
const struct wlbd_found_verdict *wlbd_detection_judge(struct wlbd_detection *detection,
                                                      const struct wlbd_attempt_ranks *ranks,
                                                      const struct wlbd_detection_limits *limits, int64_t now_ms,
                                                      int *count);

/* The calls that are open, as wlbd_open_calls_find has them. `detection` may be NULL: there are none. */
int wlbd_detection_open_calls(const struct wlbd_detection *detection, struct wlbd_open_call calls[WLBD_OPEN_CALLS_MAX]);

/* Whether the ranks are watched: else the next judgement first makes their world, which takes a part of a second where
 * there are many. */
bool wlbd_detection_watches(const struct wlbd_detection *detection);

/* Why the judgement at that time found that the ranks cannot be watched: the memory of the user, or of all, does not
 * suffice for so many, or libverdict refused them or the limits. That is tried again after half a minute. NULL: it did
 * not find that. */
const char *wlbd_detection_refusal(const struct wlbd_detection *detection, int64_t now_ms);

/* The verdicts of the last judgement that are not over. */
const struct wlbd_found_verdict *wlbd_detection_open(const struct wlbd_detection *detection, int *count);

#endif
