/*
 * Reduces the gradients of all ranks to the sums of this rank's parts, bucket by bucket, starting during the backward
 * pass. Private to worker/optimizer.
 *
 * A bucket is reduced once a step, in the last pass of its chunk; one that passes (ZeRO stage 2) in every pass. The
 * first pass gives the sums, whose bits so are those of stage 1 where a step has one micro-batch; the parts of later
 * passes are received in memory of their own and added. Stage 1 sums over micro-batches and then over ranks, and stage
 * 2 the other way round: in the order of stage 1 each rank would have to keep its own sum. One such reduction is under
 * way while the gradients of the next bucket are computed at the other end of their memory; it is awaited before the
 * next one starts.
 */
#ifndef WORKER_OPTIMIZER_REDUCE_H
#define WORKER_OPTIMIZER_REDUCE_H

#include "worker/model/parameters.h"
#include "worker/parallel/groups.h"

struct wlb_reduction {
	const struct wlb_parameters *parameters;
	const struct wlb_groups *groups;
	int next;                           /* the bucket whose reduction is started next, in order */
	int is_last_pass;                   /* 1: of the step, of the chunk whose pass it is */
	struct wlb_comm_request **requests; /* [buckets]; NULL where none is in progress */
	char *has_sums; /* [buckets] 1: the step has sums of this bucket, to which parts are added */
	int passing;    /* the bucket that passes whose reduction is in progress; -1: none */
	void *sums; /* this rank's parts, one after the other: the part of bucket b begins at b.offset / shards. In a
	               data group of one rank the parts are whole buckets, and this is the buffer of gradients itself.
	             */
	void *part; /* of a bucket that passes, to be added; NULL where nothing is */
};

/* Number of elements of a bucket that one rank of the data group owns. */
size_t wlb_part_elements(const struct wlb_parameters *parameters, const struct wlb_bucket *bucket);

/* Returns -1 if out of memory; wlb_reduction_close must still be called. */
int wlb_reduction_open(struct wlb_reduction *reduction, const struct wlb_parameters *parameters,
                       const struct wlb_groups *groups, struct wlb_error *error);
void wlb_reduction_close(struct wlb_reduction *reduction); /* `reduction` may be zeroed */

/* Begins a backward pass, which calls of wlb_reduction_start follow; is_last: of its chunk in the step. With ZeRO stage
 * 2, whose plans have one chunk, the buckets begin anew in each pass. */
int wlb_reduction_begin_pass(struct wlb_reduction *reduction, int is_last, struct wlb_error *error);

/* Starts the buckets that are complete after this layer of this chunk, and advances those that were started. */
int wlb_reduction_start(struct wlb_reduction *reduction, int chunk, int layer, struct wlb_error *error);

/* Waits for the started reductions and starts no more. The sums are then invalid. */
int wlb_reduction_wait(struct wlb_reduction *reduction, struct wlb_error *error);

/* Starts the remaining buckets, waits for all, and sums them over tp, kv or the ends of the pipeline where their kind
 * requires it. */
int wlb_reduction_finish(struct wlb_reduction *reduction, struct wlb_error *error);

#endif
