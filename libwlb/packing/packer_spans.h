/* Declares the packer's state, its strategies, and the functions with which strategies cut its spans into bins;
 * internal. */
#ifndef LIBWLB_PACKING_PACKER_SPANS_H
#define LIBWLB_PACKING_PACKER_SPANS_H

#include "libwlb/packing/assign.h"

struct wlb_packer {
	struct wlb_packer_options options;
	struct wlb_model model;
	struct wlb_assignment assignment; /* its spans: those that are held, then the new batch, in order of arrival */
	int64_t step;                     /* steps packed so far */
	int64_t arrived_tokens;           /* tokens of all batches so far */
	int64_t batch_tokens;             /* in the newest */
	int64_t cuts;                     /* in this step */
	int refused;                      /* 1: a span of this step has no valid work, as the message says */
	struct wlb_error refusal;
	struct wlb_assigned_span *held; /* what was held before this step, for a step that is refused */
	size_t held_capacity;
	double price;          /* of a mean wait of one step, in units of imbalance */
	struct wlb_bins trial; /* balanced: bins of the release that is evaluated */
	double *full_at;       /* balanced: the work at which each bin of the trial is full */
	size_t *first_of;      /* of each micro-batch: its first span in the step, while the step is written */
	struct wlb_packed_span *packed;
	size_t packed_capacity;
	struct wlb_step out;
};

/* Work as the options or the model have it. */
double wlb_packer_work(const struct wlb_packer *packer, int64_t tokens);

/* Sets the work of a span; one longer than the window, as plain has them before it cuts them, has the work of a window,
 * since functions need not be defined above it. Where work is not finite or not above 0, it becomes 1 and the step is
 * refused: its strategy runs to its end, but wlb_packer_next() returns none of it. */
void wlb_packer_weigh(struct wlb_packer *packer, struct wlb_assigned_span *assigned);

/* Makes space for `spans` spans in addition to those held, and for one cut at the end of each micro-batch. Returns -1
 * if out of memory; the packer is unchanged. */
int wlb_packer_reserve(struct wlb_packer *packer, size_t spans, struct wlb_error *error);

/* Puts the first `tokens` of a span into a bin, as a new span where the span has more tokens. wlb_packer_reserve() must
 * have reserved its space. */
void wlb_packer_cut(struct wlb_packer *packer, size_t span, int64_t tokens, int32_t bin);

/* Cuts the added spans that arrived by step `arrived_by` and are in no bin into the space left in the bins, the largest
 * spans first, until no space is left. */
void wlb_packer_cut_rest(struct wlb_packer *packer, int64_t arrived_by);

/* The strategies, in packer_balanced.c and packer_baselines.c: each sets
 * the bin of the spans of this step; spans that wait keep bin -1. */
void wlb_packer_balanced(struct wlb_packer *packer);
void wlb_packer_greedy(struct wlb_packer *packer);
void wlb_packer_fixed(struct wlb_packer *packer);
void wlb_packer_plain(struct wlb_packer *packer);
void wlb_packer_dynamic(struct wlb_packer *packer);

#endif
