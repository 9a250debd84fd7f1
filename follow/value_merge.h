/*
 * Chooses between sources, value by value: of one value of one step, the first source of `wlb.log`, TensorBoard, stdout
 * and the hook counts. So a loss may come of stdout while the learning rate comes of TensorBoard. Sources come at their
 * own time (SummaryWriter writes after 120 s at the latest): a value of a better source that comes later replaces the
 * one that was stored.
 *
 * What identifies a record is its origin: the source, its stream (a file or an output), the generation of the stream
 * (tail.h) and the byte at which it begins. Of two origins of one value of one step wlb_origin_order says which counts;
 * the order in which they come has no influence. So a record may be read, sent and stored any number of times: it is
 * there once. The store keeps the origin with each value and applies the same rule; this filter remembers the last
 * steps of each name, and spares the store what it would refuse.
 *
 * Where training is now is said by the best source that says steps; another one that has said the same steps may be
 * ahead of it, as stdout is of TensorBoard.
 *
 * A step is the trainer's own number or, as long as no source has said one in this attempt, the hook's count, which is
 * of this attempt alone. A value without a step is of the step that was said last; without any it is not stored.
 *
 * The caller has one merge for each attempt, in the process that follows it: all sources but the hook of other ranks
 * come together there. It writes what is taken, with the origin, as a record of the run's spool, and the places of the
 * streams in the same line.
 *
 * Pure: no I/O, no clock.
 */
#ifndef FOLLOW_VALUE_MERGE_H
#define FOLLOW_VALUE_MERGE_H

#include <stdbool.h>
#include <stdint.h>

#include "follow/followed.h"

enum wlb_source { WLB_SOURCE_LOG, WLB_SOURCE_TENSORBOARD, WLB_SOURCE_STDOUT, WLB_SOURCE_HOOK };

struct wlb_origin {
	enum wlb_source source;
	int stream; /* numbered by the caller, from 0 in each source; a stream keeps its number across restarts */
	int64_t generation;
	int64_t at;
};

/* Below 0: the first counts; 0: they are the same record; above 0: the second counts. The better source counts, then
 * the stream with the smaller number (of several ranks that log the same), then what comes later in the stream: the
 * step was done again. */
int wlb_origin_order(const struct wlb_origin *first, const struct wlb_origin *second);

enum {
	WLB_MERGE_NAMES_MOST = 256, /* of a run; the first ones */
	WLB_MERGE_STEPS = 251,      /* of each name that are remembered */
};

struct wlb_merge_counts {
	int64_t names_left_out; /* values of other names */
	int64_t outranked;      /* values that a better source has */
	int64_t repeated;       /* values that were taken already */
	int64_t without_step;
	int64_t steps_back; /* how often a stream said a smaller step than before */
};

struct wlb_merged {
	enum wlb_followed_step step_kind; /* WLB_FOLLOWED_NO_STEP: nothing counts */
	int64_t step;
	bool is_progress; /* this is the step at which training is now, and it was another one before */
	int count;
	int values[WLB_FOLLOWED_VALUES_MOST]; /* the values of the record that count, by their place in it */
};

struct wlb_merge;

/* NULL if out of memory. The caller closes it. */
struct wlb_merge *wlb_merge_open(void);
void wlb_merge_close(struct wlb_merge *merge); /* NULL allowed */

/* Takes a record. */
void wlb_merge_take(struct wlb_merge *merge, const struct wlb_origin *origin, const struct wlb_followed *record,
                    struct wlb_merged *merged);

struct wlb_merge_counts wlb_merge_count(const struct wlb_merge *merge);

#endif
