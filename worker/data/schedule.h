/*
 * Which documents enter step k. Depends on seed, data, sequence length and global batch only, never on
 * the layout, so that a run continued on other nodes sees the same documents in the same steps.
 *
 * A document of more than seq_length + 1 tokens is cut as Megatron-LM cuts one: spans of seq_length
 * inputs, each span's last target being the next span's first input. A span of n inputs has n
 * targets (n + 1 tokens are read); documents of fewer than 2 tokens train nothing and are passed over.
 * Spans come in a seeded order, shuffled anew each epoch: spans and not documents, as Megatron-LM
 * shuffles samples, or one huge document would be all that a thousand steps see. A step takes spans
 * in order until the next one would exceed global_batch_size * seq_length inputs; a step is never empty.
 */
#ifndef WORKER_DATA_SCHEDULE_H
#define WORKER_DATA_SCHEDULE_H

#include <stdint.h>

#include "libwlb/wlb.h"
#include "worker/data/dataset.h"

struct wlb_schedule;

/* The dataset stays the caller's and must outlive the schedule, which holds 8 bytes for each document. */
struct wlb_schedule *wlb_schedule_new(const struct wlb_dataset *dataset, int64_t seq_length, int64_t global_batch_size,
                                      uint64_t seed, struct wlb_error *error);
void wlb_schedule_free(struct wlb_schedule *schedule);

/* The spans of the next step, each its inputs [start, start + tokens), whose targets are the tokens one further; owned
 * by the schedule, valid until the next call. Returns their number. */
int wlb_schedule_next(struct wlb_schedule *schedule, const struct wlb_span **spans, struct wlb_error *error);

/* Where the schedule stands, to go into a checkpoint; setting it back gives the same future exactly. */
struct wlb_schedule_state {
	uint64_t seed;
	int64_t documents; /* of the dataset it was made for: another dataset is refused */
	int64_t tokens;    /* likewise */
	int64_t spans;     /* of an epoch: another seq_length is refused */
	int64_t epoch;
	int64_t position; /* index into the epoch's order of spans */
	int64_t step;     /* steps given so far */
};
void wlb_schedule_save(const struct wlb_schedule *schedule, struct wlb_schedule_state *state);
int wlb_schedule_restore(struct wlb_schedule *schedule, const struct wlb_schedule_state *state,
                         struct wlb_error *error);

#endif
