/*
 * What this rank trains in each step, prepared while the step before is computed.
 *
 * The schedule (worker/data/schedule.h) gives the documents of a global batch; libwlb's packer decides which of their
 * spans enter the step, from seed, data, sequence length and global batch alone; from here on the layout decides: the
 * spans are dealt to dp x micro_batches micro-batches of equal predicted work, those of a replica are shared out to
 * its context-parallel ranks, and this rank's tokens are read from the dataset. All of that happens in a thread;
 * every rank finds the same without asking the others.
 */
#ifndef WORKER_LOAD_LOADER_H
#define WORKER_LOAD_LOADER_H

#include <stddef.h>
#include <stdint.h>

#include "libwlb/wlb.h"
#include "worker/data/dataset.h"
#include "worker/data/schedule.h"
#include "worker/model/micro_batch.h"

struct wlb_loader_options {
	int64_t seq_length;
	int64_t global_batch_size; /* windows of seq_length tokens in a step */
	uint64_t seed;
	enum wlb_strategy packing;
	enum wlb_sharding sharding;
	/* How the step is dealt, wlb_loader_micro_batches says from what: micro-batches of a replica and the most
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

struct wlb_loaded_step {
	int64_t step;        /* 1 for the first of the run */
	int64_t tokens;      /* of the global batch: what the loss is divided by */
	int documents;       /* spans of documents */
	int64_t held_tokens; /* read by the packer and kept for a later step */
	int32_t micro_batches;
	const struct wlb_micro_batch *list; /* [micro_batches] of this rank, in the order they are to be run */
	double work;                        /* sum of list[].work */
	/* How things stand after this step, for a checkpoint. */
	struct wlb_schedule_state schedule;
	const void *packer_state;
	size_t packer_state_bytes;
};

struct wlb_loader;

/* dataset and device stay the caller's and must outlive the loader. `model` is copied. Nothing is loaded before the
 * first wlb_loader_next, which starts the thread. NULL with the reason where the options are refused. */
struct wlb_loader *wlb_loader_new(const struct wlb_dataset *dataset, const struct wlb_model *model,
                                  const struct wlb_loader_options *options, struct wlb_device *device,
                                  struct wlb_error *error);
/* NULL allowed. Ends the thread: waits, without a bound, for the call on a file that is under way. */
void wlb_loader_free(struct wlb_loader *loader);

/* Goes on where a run stopped; before the first wlb_loader_next. What was made with other options is refused. */
int wlb_loader_restore(struct wlb_loader *loader, const struct wlb_schedule_state *schedule, const void *packer_state,
                       size_t packer_state_bytes, struct wlb_error *error);

/* The next step, uploaded to the device; valid until the next call, when the device must be done with it. *waited_s:
 * how long the caller was held up, uploading included. To be called by the thread that uses the device. A token id that
 * is not below vocab_size is an error that names dataset, id and limit. An error too: a step after the last, and files
 * that made no progress for storage_timeout_s; then the thread is still in a call on the file that the message names,
 * wlb_loader_free would wait for it, and the process should end without. */
int wlb_loader_next(struct wlb_loader *loader, const struct wlb_loaded_step **step, double *waited_s,
                    struct wlb_error *error);

#endif
