/* Inside of the packer: its spans, and how strategies cut them into bins. */
#ifndef LIBWLB_PACKING_PACKER_SPANS_H
#define LIBWLB_PACKING_PACKER_SPANS_H

#include "libwlb/packing/assign.h"

struct wlb_packer {
	struct wlb_packer_options options;
	struct wlb_model model;
	struct wlb_assignment assignment; /* its spans: what is held, then the new batch, in the order they came */
	int64_t step;                     /* steps given */
	int64_t came_tokens;              /* in all batches so far */
	int64_t batch_tokens;             /* in the newest */
	int64_t cuts;                     /* in this step */
	double price;                     /* of a mean wait of one step, in units of imbalance */
	struct wlb_bins trial;            /* balanced: a release that is tried */
	double *full_at;                  /* balanced: the work at which each bin of the trial is full */
	size_t *first_of;                 /* spans of each micro-batch, while they are handed out */
	struct wlb_packed_span *packed;
	size_t packed_capacity;
	struct wlb_step out;
};

double wlb_packer_work(const struct wlb_packer *packer, int64_t tokens);

/* Makes space for `spans` more than are held, and for one cut at the end of each micro-batch. Returns -1 if out of
 * memory; the packer is unchanged. */
int wlb_packer_reserve(struct wlb_packer *packer, size_t spans, struct wlb_error *error);

/* Puts the first `tokens` of a span into a bin, as a span of their own where they are not all of it. Its space was
 * reserved by wlb_packer_reserve(). */
void wlb_packer_cut(struct wlb_packer *packer, size_t span, int64_t tokens, int32_t bin);

/* Cuts the added spans that came by step `came_by` and are in no bin into the space left in the bins, the largest
 * first, until that is used up. */
void wlb_packer_cut_rest(struct wlb_packer *packer, int64_t came_by);

#endif
