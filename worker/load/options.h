/* What the loader is asked for, and what that means for packing and for the assignment to micro-batches. */
#ifndef WORKER_LOAD_OPTIONS_H
#define WORKER_LOAD_OPTIONS_H

#include <stdint.h>

#include "libwlb/wlb.h"

struct wlb_loader_options {
	int64_t seq_length;
	int64_t global_batch_size; /* windows of seq_length tokens in a step */
	uint64_t seed;
	enum wlb_strategy packing;
	enum wlb_sharding sharding;
	/* How the step is divided, as wlb_loader_micro_batches sets it: micro-batches of a replica and the most
	 * tokens that one may hold, on all its context-parallel ranks. */
	int32_t micro_batches;
	int64_t max_tokens;
	struct wlb_layout layout;
	struct wlb_coordinates at;
	int64_t last_step;        /* of the run: no later one is prepared; 0: there is no last */
	double storage_timeout_s; /* above 0: wlb_loader_next fails when the files made no progress for so long */
};

/* What a step needs at the most, from options->packing and options->layout; fills in seq_length, global_batch_size,
 * micro_batches and max_tokens, so that every step of the run fits. `windows_per_micro_batch` is Megatron-LM's
 * micro-batch size; max_tokens 0 takes what a micro-batch of that many windows may hold under the strategy: 1.25 times
 * as much for balanced and greedy packing, no more than they for fixed and plain. The number of micro-batches is
 * global_batch_size / (windows x dp), rounded up, and up to a multiple of pp where interleave > 1; raised where
 * max_tokens is so small that the step would not fit. -1 with numbers and rule where that is impossible (max_tokens
 * below seq_length). */
int wlb_loader_micro_batches(int64_t seq_length, int64_t global_batch_size, int64_t windows_per_micro_batch,
                             int64_t max_tokens, int32_t interleave, struct wlb_loader_options *options,
                             struct wlb_error *error);

/* Rows that the largest micro-batch may have on a rank. */
int64_t wlb_loader_max_rows(const struct wlb_loader_options *options);

/* The packer's options: nothing in them comes from the layout, so that every layout packs the same steps. */
void wlb_loader_packer_options(const struct wlb_loader_options *options, struct wlb_packer_options *packer);

/* Tokens that one of the packer's micro-batches, of which a step has global_batch_size, holds at the most. */
int64_t wlb_loader_packed_tokens(const struct wlb_loader_options *options);

/* Micro-batches of all replicas together. */
int64_t wlb_loader_bins(const struct wlb_loader_options *options);

/* 0 when every step that can come fits, -1 with the value and the rule. */
int wlb_loader_check(const struct wlb_loader_options *options, struct wlb_error *error);

#endif
