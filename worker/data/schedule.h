/*
 * Decides which documents enter step k. They depend only on seed, data, sequence length and global batch, never on the
 * layout, so that a run continued on other nodes trains the same documents in the same steps.
 *
 * A document of more than seq_length + 1 tokens is cut as Megatron-LM cuts one: spans of seq_length inputs, where the
 * last target of a span is the first input of the next. A span of n inputs has n targets (n + 1 tokens are read);
 * documents of fewer than 2 tokens have no target and are skipped. Spans have a seeded order, which is shuffled again
 * for each epoch. Spans are shuffled and not documents, as Megatron-LM shuffles samples; otherwise one long document
 * could fill a thousand steps. A step takes spans in order until the next one would exceed its batch * seq_length
 * inputs; a step is never empty. The batch is global_batch_size, or less in a ramp (batch_ramp.h): it depends only on
 * the batches of the steps before.
 *
 * Each group of a dataset (dataset.h) has an order of its own. Of several, the next span is of the group that lags most
 * behind its share of the spans so far: Megatron-LM's build_blending_indices, whose samples are all of one length. Here
 * spans have any length, so that the share of the spans is that of the tokens divided by the mean length of the group's
 * spans.
 */
#ifndef WORKER_DATA_SCHEDULE_H
#define WORKER_DATA_SCHEDULE_H

#include <stdint.h>

#include "libwlb/wlb.h"
#include "worker/data/batch_ramp.h"
#include "worker/data/dataset.h"

struct wlb_schedule;

/* Returns -1 where no document has a target. */
int wlb_schedule_check(const struct wlb_dataset *dataset, struct wlb_error *error);

/* The caller owns the dataset, which must outlive the schedule. Memory: 8 bytes for each 64 documents, since each rank
 * has a schedule, and the lengths are in the index that the ranks of a node share. */
struct wlb_schedule *wlb_schedule_new(const struct wlb_dataset *dataset, int64_t seq_length, int64_t global_batch_size,
                                      uint64_t seed, struct wlb_error *error);
void wlb_schedule_free(struct wlb_schedule *schedule);
/* The batch grows by this ramp, which passes wlb_batch_ramp_check, to global_batch_size. */
void wlb_schedule_set_ramp(struct wlb_schedule *schedule, const struct wlb_batch_ramp *ramp);

/* Sets *spans to the spans of the next step: each has the inputs [start, start + tokens), and the target of an input is
 * the token after it. The schedule owns them; they are valid until the next call. Returns their number. */
int wlb_schedule_next(struct wlb_schedule *schedule, const struct wlb_span **spans, struct wlb_error *error);
/* Returns the windows of the step that the next call of it gives. */
int64_t wlb_schedule_batch(const struct wlb_schedule *schedule);

/* More windows than any run trains, so that another step's can be added. */
#define WLB_SCHEDULE_WINDOWS_MAX (INT64_C(1) << 62)

/* The state of the schedule, for a checkpoint; a schedule that restores it returns exactly the same later steps. */
struct wlb_schedule_state {
	uint64_t seed;
	int64_t documents;     /* of the dataset of the schedule; another dataset is refused */
	int64_t tokens;        /* likewise */
	uint64_t index_digest; /* likewise; 0: earlier versions did not keep it */
	uint64_t token_digest; /* likewise; 0 also where it was not made */
	int64_t spans;         /* of an epoch; another seq_length is refused */
	int64_t epoch;         /* spans taken so far, divided by `spans` */
	int64_t position;      /* the rest: of one group the index into the epoch's order */
	int64_t step;          /* steps returned so far */
	int64_t windows;       /* the sum of their batches; below WLB_SCHEDULE_WINDOWS_MAX */
	/* Of several groups: how many, and the spans taken of each; their sum is epoch * spans + position. 0: one. */
	int groups;
	int64_t taken[WLB_DATASET_PARTS_MAX];
};
void wlb_schedule_save(const struct wlb_schedule *schedule, struct wlb_schedule_state *state);
/* Returns -1 where the state is of another dataset, seed or sequence length. */
int wlb_schedule_check_state(const struct wlb_schedule *schedule, const struct wlb_schedule_state *state,
                             struct wlb_error *error);
int wlb_schedule_restore(struct wlb_schedule *schedule, const struct wlb_schedule_state *state,
                         struct wlb_error *error);

#endif
