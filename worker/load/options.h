/* The options of the loader, and the options of packing and of the assignment to micro-batches that follow from them.
 */
#ifndef WORKER_LOAD_OPTIONS_H
#define WORKER_LOAD_OPTIONS_H

#include <stdint.h>

#include "libwlb/wlb.h"
#include "worker/data/batch_ramp.h"
#include "worker/load/document_time.h"

struct wlb_loader_options {
	int64_t seq_length;
	int64_t global_batch_size; /* windows of seq_length tokens in a step, at the end of the ramp */
	struct wlb_batch_ramp ramp;
	uint64_t seed;
	enum wlb_strategy packing;
	enum wlb_sharding sharding;
	/* How the step is divided, as wlb_loader_micro_batches sets it: the number of micro-batches of a replica, and
	 * the most tokens that one may have on all context-parallel ranks of a replica together. */
	int32_t micro_batches;
	int64_t max_tokens;
	struct wlb_layout layout;
	struct wlb_coordinates coords;
	int64_t last_step; /* of the run: no later step is prepared; 0: no limit */
	/* Each step whose number is a multiple of it has one micro-batch more, the same on all replicas; 0: none has.
	 */
	int64_t check_interval;
	int64_t halved_rows; /* of a micro-batch that tensor-parallel ranks have in halves, the least; 0: none is */
	/* Of the device, for the assignment and adaptive sharding; copied by wlb_loader_new. NULL or not measured:
	 * compiled in. */
	const struct wlb_document_speeds *speeds;
	double storage_timeout_s; /* above 0: wlb_loader_next fails when the files made no progress for so long */
};

/* Sets seq_length, global_batch_size, micro_batches and max_tokens, from options->packing and options->layout, so that
 * every step of the run fits. `windows_per_micro_batch` is Megatron-LM's micro-batch size; max_tokens 0 uses the limit
 * of the strategy: once the tokens of that many windows for fixed and plain packing, else 1.25 times, and for dynamic
 * at least so many that all replicas together have space for one window more. The number of micro-batches is
 * global_batch_size / (windows x dp), rounded up, and up to a multiple of pp where interleave > 1; raised where
 * max_tokens is so small that the step would not fit. Returns -1 with numbers and rule where no number fits (max_tokens
 * below seq_length). */
int wlb_loader_micro_batches(int64_t seq_length, int64_t global_batch_size, int64_t windows_per_micro_batch,
                             int64_t max_tokens, int32_t interleave, struct wlb_loader_options *options,
                             struct wlb_error *error);

/* How many ranks share a micro-batch: cp, or cp x dp with dynamic packing; and the number of this rank among these. */
int32_t wlb_loader_ranks(const struct wlb_loader_options *options);
int32_t wlb_loader_rank(const struct wlb_loader_options *options);

/* The ranks for whose keys a rank has memory: cp, or as wlb_dynamic_cp_key_ranks. */
int32_t wlb_loader_key_ranks(const struct wlb_loader_options *options);

/* The most tokens that a rank's documents of a micro-batch may have, on all their ranks together. */
int64_t wlb_loader_max_keys(const struct wlb_loader_options *options);

/* The most tokens, and the most rows, that a micro-batch may have on a rank. */
int64_t wlb_loader_rank_tokens(const struct wlb_loader_options *options);
int64_t wlb_loader_max_rows(const struct wlb_loader_options *options);

/* The most micro-batches that a rank loads in a step: those that it trains, and the one of a check. */
int32_t wlb_loader_loaded_batches(const struct wlb_loader_options *options);

/* Sets the packer's options. They do not depend on the layout, so that every layout packs the same steps. */
void wlb_loader_packer_options(const struct wlb_loader_options *options, struct wlb_packer_options *packer);

/* The most tokens of one of the packer's micro-batches; a step has global_batch_size of these. */
int64_t wlb_loader_packed_tokens(const struct wlb_loader_options *options);

/* The limit of the packer's micro-batches, by seq_length: 1 where all have equal length. */
double wlb_loader_length_ratio(const struct wlb_loader_options *options);

/* Returns the least number of micro-batches, of all replicas together, that holds every possible step. max_tokens must
 * be set. */
int64_t wlb_loader_bins_min(const struct wlb_loader_options *options);

/* The number of micro-batches of all replicas together. */
int64_t wlb_loader_bins(const struct wlb_loader_options *options);

/* The same, of a step of `windows` windows, at most global_batch_size: fewer of about the same size, where each replica
 * has at least one, and every possible step fits. The other micro-batches are empty. */
int64_t wlb_loader_step_bins(const struct wlb_loader_options *options, int64_t windows);

/* Returns 0 when every possible step fits, -1 with the value and the rule otherwise. */
int wlb_loader_check(const struct wlb_loader_options *options, struct wlb_error *error);

#endif
