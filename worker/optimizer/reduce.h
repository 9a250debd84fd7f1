/*
 * Reduces the gradients of all ranks to the sums of this rank's parts, bucket by bucket, starting during the backward
 * pass. Private to worker/optimizer.
 */
#ifndef WORKER_OPTIMIZER_REDUCE_H
#define WORKER_OPTIMIZER_REDUCE_H

#include "worker/model/parameters.h"
#include "worker/parallel/groups.h"

struct wlb_reduction {
	const struct wlb_parameters *parameters;
	const struct wlb_groups *groups;
	int started;                        /* number of buckets whose reduction was started, in order */
	struct wlb_comm_request **requests; /* [buckets]; NULL where none is in progress */
	void *sums; /* this rank's parts, one after the other: the part of bucket b begins at b.offset / shards. In a
	               data group of one rank the parts are whole buckets, and this is the buffer of gradients itself.
	             */
};

/* Number of elements of a bucket that one rank of the data group owns. */
size_t wlb_part_elements(const struct wlb_parameters *parameters, const struct wlb_bucket *bucket);

/* Returns -1 if out of memory; wlb_reduction_close must still be called. */
int wlb_reduction_open(struct wlb_reduction *reduction, const struct wlb_parameters *parameters,
                       const struct wlb_groups *groups, struct wlb_error *error);
void wlb_reduction_close(struct wlb_reduction *reduction); /* `reduction` may be zeroed */

/* Starts the buckets that are complete after this layer of this chunk, and advances those that were started. */
int wlb_reduction_start(struct wlb_reduction *reduction, int chunk, int layer, struct wlb_error *error);

/* Waits for the started reductions and starts no more. The sums are then invalid. */
int wlb_reduction_wait(struct wlb_reduction *reduction, struct wlb_error *error);

/* Starts the remaining buckets, waits for all, and sums them over tp, kv or the ends of the pipeline where their kind
 * requires it. */
int wlb_reduction_finish(struct wlb_reduction *reduction, struct wlb_error *error);

#endif
