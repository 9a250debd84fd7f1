/* Inside of the packer, shared by its strategies. */
#ifndef LIBWLB_PACKING_PACKER_H
#define LIBWLB_PACKING_PACKER_H

#include "libwlb/packing/assign.h"

struct wlb_packer {
	struct wlb_packer_options options;
	struct wlb_model model;
	struct wlb_deal deal;  /* its items: what is held, then the new batch, in the order they came */
	int64_t step;          /* steps given */
	int64_t came_tokens;   /* in all batches so far */
	int64_t batch_tokens;  /* in the newest */
	int64_t cuts;          /* in this step */
	double price;          /* of a mean wait of one step, in units of imbalance */
	struct wlb_bins trial; /* balanced: a release thought through */
	double *full_at;       /* balanced: the work at which each bin of the trial has no room */
	size_t *first_of;      /* pieces of each micro-batch, while they are handed out */
	struct wlb_packed *pieces;
	size_t pieces_capacity;
	struct wlb_step out;
};

double wlb_packer_work(const struct wlb_packer *packer, int64_t tokens);

/* Room for `pieces` more than are held, and for one cut at the end of each micro-batch. */
int wlb_packer_reserve(struct wlb_packer *packer, size_t pieces, struct wlb_error *error);

/* Puts the first `tokens` of an item into a bin, as an item of its own where they are not all of it. The room
 * for it has been reserved. */
void wlb_packer_cut(struct wlb_packer *packer, size_t item, int64_t tokens, int32_t bin);

/* Cuts the ranked items that came by `came_by` and are in no bin into the rooms left, the largest first, as far as
 * those go. */
void wlb_packer_cut_rest(struct wlb_packer *packer, int64_t came_by);

/* Each gives the items of this step their bins and leaves -1 to those that wait. */
void wlb_packer_balanced(struct wlb_packer *packer);
void wlb_packer_greedy(struct wlb_packer *packer);
void wlb_packer_fixed(struct wlb_packer *packer);
void wlb_packer_plain(struct wlb_packer *packer);

#endif
