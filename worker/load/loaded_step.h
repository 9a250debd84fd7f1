/* A step as this rank trains it. */
#ifndef WORKER_LOAD_LOADED_STEP_H
#define WORKER_LOAD_LOADED_STEP_H

#include <stddef.h>
#include <stdint.h>

#include "worker/data/schedule.h"
#include "worker/model/micro_batch.h"

struct wlb_loaded_step {
	int64_t step;        /* 1 for the first of the run */
	int64_t tokens;      /* of the global batch */
	int64_t loss_tokens; /* of these, those whose loss counts: the divisor of the loss; may be 0 */
	int32_t windows;     /* its batch: at most windows x seq_length tokens enter the packer */
	int documents;       /* spans of documents */
	int64_t held_tokens; /* read by the packer and kept for a later step */
	int32_t micro_batches;
	const struct wlb_micro_batch *list; /* [micro_batches] of this rank, in the order of execution */
	/* This rank's part of one of the micro-batches of all replicas, the same one on every replica: all of them can
	 * compute it, and compare what they find. NULL: not in this step. */
	const struct wlb_micro_batch *check;
	double work;        /* sum of list[].work */
	double predicted_s; /* of this rank's passes over them: wlb_shards_time_s */
	/* The states of schedule and packer after this step, for a checkpoint. */
	struct wlb_schedule_state schedule;
	const void *packer_state;
	size_t packer_state_bytes;
};

#endif
