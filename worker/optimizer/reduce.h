/*
 * From every rank's gradients to the sums of this rank's parts: bucket by bucket, begun while the backward pass goes
 * on. Private to worker/optimizer.
 */
#ifndef WORKER_OPTIMIZER_REDUCE_H
#define WORKER_OPTIMIZER_REDUCE_H

#include "worker/model/parameters.h"
#include "worker/parallel/groups.h"

struct wlb_reduction {
	const struct wlb_parameters *parameters;
	const struct wlb_groups *groups;
	int started;                        /* the first of the buckets */
	struct wlb_comm_request **requests; /* [buckets]; NULL where none is under way */
	void *sums; /* this rank's parts, one after the other: those of bucket b from b.offset / shards on. Alone in the
	             * data group the parts are whole buckets, and this is the buffer of gradients itself. */
};

/* What one rank of the data group owns of a bucket. */
size_t wlb_part_elements(const struct wlb_parameters *parameters, const struct wlb_bucket *bucket);

/* -1: out of memory; wlb_reduction_close then still applies. */
int wlb_reduction_open(struct wlb_reduction *reduction, const struct wlb_parameters *parameters,
                       const struct wlb_groups *groups, struct wlb_error *error);
void wlb_reduction_close(struct wlb_reduction *reduction); /* a zeroed one is fine */

/* Starts what is complete once this layer of this chunk is done, and lets what was started move on. */
int wlb_reduction_start(struct wlb_reduction *reduction, int chunk, int layer, struct wlb_error *error);

/* Waits for what was started, and starts no more. The sums are then those of no step. */
int wlb_reduction_wait(struct wlb_reduction *reduction, struct wlb_error *error);

/* Starts what is left, waits for all, and sums over tp, kv and the pipeline's ends what must be. */
int wlb_reduction_finish(struct wlb_reduction *reduction, struct wlb_error *error);

#endif
