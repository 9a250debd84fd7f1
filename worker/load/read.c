#include "worker/load/read.h"

#include <string.h>

/* The documents held by a packer from a checkpoint may belong to another dataset. */
static int check_span(const struct wlb_dataset *dataset, const struct wlb_span *span, struct wlb_error *error)
{
	if (span->document < 0 || span->document >= wlb_dataset_documents(dataset))
		return wlb_fail(error,
		                "%s: document %lld is to be trained, but it has %lld: use the dataset of the run",
		                wlb_dataset_path(dataset), (long long)span->document,
		                (long long)wlb_dataset_documents(dataset));
	int64_t tokens = wlb_dataset_length(dataset, span->document);
	if (span->start < 0 || span->start + span->tokens >= tokens)
		return wlb_fail(error,
		                "%s: tokens %lld to %lld of document %lld are to be trained, but it has %lld: use the "
		                "dataset of the run",
		                wlb_dataset_path(dataset), (long long)span->start,
		                (long long)(span->start + span->tokens), (long long)span->document, (long long)tokens);
	return 0;
}

/* Ids beyond the vocabulary would read beyond the embedding. */
static int check_ids(const struct wlb_dataset *dataset, int64_t document, const int32_t *ids, int32_t count,
                     int64_t vocab_size, struct wlb_error *error)
{
	for (int32_t i = 0; i < count; i++)
		if (ids[i] >= vocab_size)
			return wlb_fail(error,
			                "%.500s: document %lld holds token id %d, ids must be below vocab_size %lld: "
			                "build it with the model's tokenizer",
			                wlb_dataset_path(dataset), (long long)document, ids[i], (long long)vocab_size);
	return 0;
}

int wlb_read_rows(struct wlb_rows *rows, int32_t number, const struct wlb_shards *shards, int32_t rank,
                  const struct wlb_span *spans, const struct wlb_dataset *dataset, int64_t vocab_size,
                  struct wlb_error *error)
{
	int32_t *ids = rows->host + rows->arrays[number].ids, *targets = rows->host + rows->arrays[number].targets;
	for (size_t s = shards->first_shard[rank]; s < shards->first_shard[rank + 1]; s++) {
		const struct wlb_shard *shard = &shards->shards[s];
		const struct wlb_span *span = &spans[shard->document];
		int32_t *own = ids + shard->q_start, count = shard->q_count;
		if (check_span(dataset, span, error) < 0 ||
		    wlb_dataset_read(dataset, span->document, span->start + shard->q_offset, (int64_t)count + 1, own,
		                     error) < 0 ||
		    check_ids(dataset, span->document, own, count + 1, vocab_size, error) < 0)
			return -1;
		memcpy(targets + shard->q_start, own + 1, (size_t)count * sizeof(*targets));
	}
	ids[rows->list[number].own_rows] = 0; /* the last target, where the padding begins */
	return 0;
}
