#include "worker/micro_batch.h"

#include <stdlib.h>
#include <string.h>

struct wlb_micro_batch *wlb_micro_batch_new(struct wlb_device *device, int64_t max_tokens, struct wlb_error *error)
{
	struct wlb_micro_batch *batch = calloc(1, sizeof(*batch));
	if (batch == NULL) {
		wlb_fail(error, "out of memory for a micro-batch");
		return NULL;
	}
	size_t n = (size_t)max_tokens, bytes = n * sizeof(int32_t);
	batch->device = device;
	batch->max_tokens = max_tokens;
	batch->ids_host = malloc(bytes);
	batch->targets_host = malloc(bytes);
	batch->positions_host = malloc(bytes);
	batch->segments_host = malloc(n * sizeof(*batch->segments_host));
	batch->piece_host = malloc(bytes + sizeof(int32_t));
	batch->ids = device->ops->alloc(device, bytes, error);
	batch->targets = device->ops->alloc(device, bytes, error);
	batch->positions = device->ops->alloc(device, bytes, error);
	batch->segments.segments = device->ops->alloc(device, n * sizeof(*batch->segments_host), error);
	if (batch->ids_host != NULL && batch->targets_host != NULL && batch->positions_host != NULL &&
	    batch->segments_host != NULL && batch->piece_host != NULL && batch->ids != NULL && batch->targets != NULL &&
	    batch->positions != NULL && batch->segments.segments != NULL)
		return batch;
	wlb_fail(error, "out of memory for micro-batches of %lld tokens", (long long)max_tokens);
	wlb_micro_batch_free(batch);
	return NULL;
}

void wlb_micro_batch_free(struct wlb_micro_batch *batch)
{
	if (batch == NULL)
		return;
	const struct wlb_ops *ops = batch->device->ops;
	ops->release(batch->device, batch->ids);
	ops->release(batch->device, batch->targets);
	ops->release(batch->device, batch->positions);
	ops->release(batch->device, (void *)batch->segments.segments);
	free(batch->ids_host);
	free(batch->targets_host);
	free(batch->positions_host);
	free(batch->segments_host);
	free(batch->piece_host);
	free(batch);
}

void wlb_micro_batch_clear(struct wlb_micro_batch *batch)
{
	batch->tokens = 0;
	batch->segments.count = 0;
	batch->segments.max_q = 0;
	batch->segments.max_k = 0;
}

int wlb_micro_batch_add(struct wlb_micro_batch *batch, const int32_t *tokens_host, int32_t length,
                        struct wlb_error *error)
{
	if (length < 1 || length > batch->max_tokens - batch->tokens)
		return wlb_fail(error, "a piece of %d tokens: the micro-batch has room for 1 to %lld", length,
		                (long long)(batch->max_tokens - batch->tokens));
	int32_t start = (int32_t)batch->tokens;
	memcpy(batch->ids_host + start, tokens_host, (size_t)length * sizeof(int32_t));
	memcpy(batch->targets_host + start, tokens_host + 1, (size_t)length * sizeof(int32_t));
	for (int32_t i = 0; i < length; i++)
		batch->positions_host[start + i] = i;
	batch->segments_host[batch->segments.count++] =
		(struct wlb_segment){.q_start = start, .q_count = length, .k_start = start, .k_count = length};
	if (length > batch->segments.max_q)
		batch->segments.max_q = batch->segments.max_k = length;
	batch->tokens += length;
	return 0;
}

int wlb_micro_batch_read(struct wlb_micro_batch *batch, const struct wlb_dataset *dataset,
                         const struct wlb_piece *piece, struct wlb_error *error)
{
	if (piece->length > batch->max_tokens)
		return wlb_fail(error, "document %lld: a piece of %d tokens in micro-batches of %lld",
		                (long long)piece->document, piece->length, (long long)batch->max_tokens);
	if (wlb_dataset_read(dataset, piece->document, piece->start, (int64_t)piece->length + 1, batch->piece_host,
	                     error) < 0)
		return -1;
	return wlb_micro_batch_add(batch, batch->piece_host, piece->length, error);
}

void wlb_micro_batch_upload(struct wlb_micro_batch *batch)
{
	const struct wlb_ops *ops = batch->device->ops;
	size_t bytes = (size_t)batch->tokens * sizeof(int32_t);
	ops->to_device(batch->device, batch->ids, batch->ids_host, bytes);
	ops->to_device(batch->device, batch->targets, batch->targets_host, bytes);
	ops->to_device(batch->device, batch->positions, batch->positions_host, bytes);
	ops->to_device(batch->device, (void *)batch->segments.segments, batch->segments_host,
	               (size_t)batch->segments.count * sizeof(*batch->segments_host));
}
