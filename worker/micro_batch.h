/*
 * What one forward and backward pass works on: pieces of documents laid end to end, and where each begins.
 * Buffers are sized once; a micro-batch is filled, uploaded, used, and filled again.
 */
#ifndef WLB_MICRO_BATCH_H
#define WLB_MICRO_BATCH_H

#include <stdint.h>

#include "kernels/ops.h"
#include "worker/data/dataset.h"
#include "worker/data/schedule.h"

struct wlb_micro_batch {
	struct wlb_device *device;
	int64_t max_tokens;
	int64_t tokens;
	int32_t *ids_host; /* [max_tokens] */
	int32_t *targets_host;
	int32_t *positions_host; /* restart at 0 with each piece */
	struct wlb_segment *segments_host;
	int32_t *piece_host; /* [max_tokens + 1]: one piece as read */
	int32_t *ids;        /* device copies */
	int32_t *targets;
	int32_t *positions;
	struct wlb_segments segments; /* .segments is device memory */
};

struct wlb_micro_batch *wlb_micro_batch_new(struct wlb_device *device, int64_t max_tokens, struct wlb_error *error);
void wlb_micro_batch_free(struct wlb_micro_batch *batch); /* NULL allowed */

void wlb_micro_batch_clear(struct wlb_micro_batch *batch);
/* Appends a piece of `length` inputs, whose targets are the inputs shifted by one: tokens[length + 1].
 * -1 when it does not fit. */
int wlb_micro_batch_add(struct wlb_micro_batch *batch, const int32_t *tokens_host, int32_t length,
                        struct wlb_error *error);
/* The same, read from the dataset. */
int wlb_micro_batch_read(struct wlb_micro_batch *batch, const struct wlb_dataset *dataset,
                         const struct wlb_piece *piece, struct wlb_error *error);
/* Copies what was added to the device. */
void wlb_micro_batch_upload(struct wlb_micro_batch *batch);

#endif
