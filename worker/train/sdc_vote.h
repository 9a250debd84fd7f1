/*
 * Which ranks have computed wrongly, from digests of what every replica computed of one micro-batch, and of what it
 * computed of it the second time. No I/O.
 *
 * Digests of a rank, in this order: of what each of its chunks leaves in the forward pass, of what each leaves in the
 * backward pass, and of the gradients of its weights with its loss. What one rank computes wrongly makes all that
 * follows it in the replica differ, so the first difference in the order of the passes says where it was.
 */
#ifndef WORKER_TRAIN_SDC_VOTE_H
#define WORKER_TRAIN_SDC_VOTE_H

#include <stdint.h>

#include "libwlb/wlb.h"

struct wlb_sdc_shape {
	struct wlb_layout layout;
	int chunks;         /* of each stage */
	int is_head_shared; /* each stage computes a part of the head */
	int by_replicas; /* 1: digests of replicas may be compared; 0: those of the first and the second time alone */
};

static inline int wlb_sdc_digests(const struct wlb_sdc_shape *shape)
{
	return 2 * shape->chunks + 1;
}

/* Of a place in the layout. */
struct wlb_sdc_suspect {
	int count; /* of the places of which one is at fault; 0: this one is not suspected */
	int first; /* the lowest of them */
	int other; /* a place that computed other bits; the same place: it did so itself the second time */
};

/* Returns 1 where replicas differ. digests[places of the layout, wlb_sdc_digests]. */
int wlb_sdc_differ(const struct wlb_sdc_shape *shape, const uint64_t *digests);

/* Sets suspects[places] from the digests of both times, and returns how many places are suspected. A replica that
 * differs from itself is at fault; else one that differs from most replicas; where none has most of them on its side,
 * all that differ are suspected together. Inside a replica it is the ranks of the stage where the first difference is,
 * or, where that is in the gradients of weights alone, the ranks that have it. */
int wlb_sdc_vote(const struct wlb_sdc_shape *shape, const uint64_t *first, const uint64_t *second,
                 struct wlb_sdc_suspect *suspects);

#endif
