/* Which data-parallel rank trains which pieces of a step, in which of its micro-batches. */
#ifndef WLB_DEAL_H
#define WLB_DEAL_H

#include <stdint.h>

#include "libwlb/wlb.h"
#include "worker/data/schedule.h"

struct wlb_deal {
	int micro_batches; /* of each rank: the same everywhere */
	int32_t *lengths;
	int32_t *bin_of; /* [count]: micro-batch bin_of[i] / dp of rank bin_of[i] % dp */
	int capacity;
};

/* Deals the pieces so that predicted work is as equal as wlb_pack_greedy gives, in the fewest micro-batches
 * that hold at most max_tokens each. Equal inputs give equal outputs, so every rank finds the same. Start from
 * a zeroed struct. */
int wlb_deal_pieces(struct wlb_deal *deal, const struct wlb_model *model, const struct wlb_piece *pieces, int count,
                    int dp, int64_t max_tokens, struct wlb_error *error);
void wlb_deal_free(struct wlb_deal *deal); /* what it holds, not the struct */

#endif
