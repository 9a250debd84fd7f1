#include "libwlb/sharding/shard_build.h"

enum { NONE = -1 };

int wlb_shard_builder_init(struct wlb_shard_builder *b, const struct wlb_shard_batch *batch,
                           struct wlb_shard_memory *memory, struct wlb_shard_result *result, size_t spans)
{
	struct wlb_shards *made = &result->shards;
	size_t ranks = (size_t)batch->ranks;
	*b = (struct wlb_shard_builder){.memory = memory, .result = result};
	b->spans = wlb_buffer_zeroed(&memory->spans, spans, sizeof(*b->spans));
	b->newest = wlb_buffer_zeroed(&memory->newest, ranks, sizeof(*b->newest));
	*made = (struct wlb_shards){.ranks = batch->ranks};
	made->first_shard = wlb_buffer_zeroed(&result->first_shard_buffer, ranks + 1, sizeof(*made->first_shard));
	made->first_row = wlb_buffer_zeroed(&result->first_row_buffer, ranks + 1, sizeof(*made->first_row));
	if (b->spans == NULL || b->newest == NULL || made->first_shard == NULL || made->first_row == NULL)
		return -1;
	for (size_t r = 0; r < ranks; r++)
		b->newest[r] = NONE;
	return 0;
}

void wlb_shard_builder_add(struct wlb_shard_builder *b, struct wlb_rank_span span)
{
	if (span.count == 0)
		return;
	struct wlb_shards *made = &b->result->shards;
	made->first_row[span.rank + 1] += span.count;
	made->tokens += span.count;
	int64_t *newest = &b->newest[span.rank];
	if (*newest != NONE) {
		struct wlb_rank_span *last = &b->spans[*newest];
		if (last->document == span.document && last->start + last->count == span.start) {
			last->count += span.count;
			return;
		}
	}
	*newest = (int64_t)b->count;
	b->spans[b->count++] = span;
	made->first_shard[span.rank + 1]++;
}

/* Sets keys[i] to the first key of document i. */
static void set_first_keys(const struct wlb_shard_batch *batch, int32_t *keys)
{
	int32_t tokens = 0;
	for (size_t i = 0; i < batch->count; i++) {
		keys[i] = tokens;
		if (wlb_shard_ranks_of(batch, i) > 0)
			tokens += (int32_t)batch->tokens[i];
	}
}

/* Sorts the spans by rank and keeps their order within a rank. next: one element for each rank. */
static void place_shards(struct wlb_shard_builder *b, const int32_t *keys, size_t *next)
{
	struct wlb_shards *made = &b->result->shards;
	for (int32_t r = 0; r < made->ranks; r++) {
		made->first_shard[r + 1] += made->first_shard[r];
		made->first_row[r + 1] += made->first_row[r];
		next[r] = made->first_shard[r];
	}
	for (size_t p = 0; p < b->count; p++) {
		const struct wlb_rank_span *span = &b->spans[p];
		struct wlb_shard *shard = &made->shards[next[span->rank]];
		int is_first = next[span->rank]++ == made->first_shard[span->rank];
		*shard = (struct wlb_shard){
			.document = span->document,
			.q_start = is_first ? 0 : shard[-1].q_start + shard[-1].q_count,
			.q_count = span->count,
			.k_start = keys[span->document],
			.k_count = span->start + span->count,
			.q_offset = span->start,
		};
	}
}

int wlb_shard_builder_finish(struct wlb_shard_builder *b, const struct wlb_shard_batch *batch,
                             enum wlb_sharding sharding)
{
	struct wlb_shards *made = &b->result->shards;
	int32_t *keys = wlb_buffer_zeroed(&b->memory->keys, batch->count, sizeof(*keys));
	size_t *next = wlb_buffer_zeroed(&b->memory->next, (size_t)batch->ranks, sizeof(*next));
	made->shards = wlb_buffer_zeroed(&b->result->shards_buffer, b->count, sizeof(*made->shards));
	if (keys == NULL || next == NULL || made->shards == NULL)
		return -1;
	set_first_keys(batch, keys);
	place_shards(b, keys, next);
	made->sharding = sharding;
	return 0;
}
