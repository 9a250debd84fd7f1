/*
 * One record of a trainer that is followed: what one line or event says of a step. Every reader of this folder yields
 * it; value_merge.h chooses between readers.
 */
#ifndef FOLLOW_FOLLOWED_H
#define FOLLOW_FOLLOWED_H

#include <stddef.h>
#include <stdint.h>

#include "follow/value_name.h"

enum { WLB_FOLLOWED_VALUES_MOST = 64 };
#define WLB_FOLLOWED_STEP_MOST INT64_C(1000000000000) /* the limit of docs/api.md */

/* A number counted from the start of the attempt never becomes the step of the run: after a restart both differ. */
enum wlb_followed_step {
	WLB_FOLLOWED_NO_STEP,         /* the record does not say */
	WLB_FOLLOWED_STEP,            /* the trainer's own number */
	WLB_FOLLOWED_STEP_OF_ATTEMPT, /* counted by the hook, from 1 */
};

struct wlb_followed_value {
	char name[WLB_VALUE_NAME_SIZE];
	double value; /* any double: a loss that is NaN is what its user looks for */
};

struct wlb_followed {
	enum wlb_followed_step step_kind;
	int64_t step;  /* 0 to WLB_FOLLOWED_STEP_MOST; 0 without a step */
	int64_t at;    /* where in its stream it begins, in bytes; set by who knows it */
	double time_s; /* since 1970; 0: the record does not say, the caller takes the time at which it was read */
	int count;
	int left_out; /* values without room here, without a usable name, or that are no numbers */
	struct wlb_followed_value values[WLB_FOLLOWED_VALUES_MOST];
};

void wlb_followed_begin(struct wlb_followed *record);

/* Adds a value under the name of wlb_value_name; a name that is there is replaced. */
void wlb_followed_add(struct wlb_followed *record, const char *name, size_t length, double value);

/* Sets the step; one outside of its bounds is as none. */
void wlb_followed_set_step(struct wlb_followed *record, enum wlb_followed_step kind, double step);

/* The value of that name, or NULL. */
const double *wlb_followed_find(const struct wlb_followed *record, const char *name);

#endif
