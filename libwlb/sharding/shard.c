/* Shards a micro-batch: checks the arguments and selects the method. */

#include <stdlib.h>
#include <string.h>

#include "libwlb/sharding/shard_build.h"
#include "libwlb/sharding/shard_cut.h"

enum { RANKS_MAX = 65536 };
static const int64_t most_tokens = (int64_t)1 << 30; /* lengths and rows have 32 bits */
static const char *const names[] = {"per-sequence", "per-document", "adaptive"};
enum { SHARDINGS = sizeof(names) / sizeof(names[0]) };

const char *wlb_sharding_name(enum wlb_sharding sharding)
{
	return (unsigned)sharding < SHARDINGS ? names[sharding] : "unknown";
}

int wlb_sharding_parse(const char *text, enum wlb_sharding *sharding, struct wlb_error *error)
{
	for (int i = 0; i < SHARDINGS; i++)
		if (strcmp(text, names[i]) == 0) {
			*sharding = (enum wlb_sharding)i;
			return 0;
		}
	return wlb_fail(error, "sharding \"%s\" is not known: per-sequence, per-document or adaptive", text);
}

static int check_batch(const struct wlb_shard_batch *batch, struct wlb_error *error)
{
	int64_t sum = 0;
	if (batch->ranks < 1 || batch->ranks > RANKS_MAX)
		return wlb_fail(error, "%d ranks share a micro-batch: it must be 1 to %d", batch->ranks, RANKS_MAX);
	if (batch->count > (size_t)most_tokens)
		return wlb_fail(error, "%zu documents in a micro-batch: at most 2^30 are allowed", batch->count);
	for (size_t i = 0; i < batch->count; i++) {
		int64_t tokens = batch->tokens[i];
		if (tokens < 0)
			return wlb_fail(error, "document %zu has %lld tokens: it must not be negative", i,
			                (long long)tokens);
		if (wlb_shard_ranks_of(batch, i) == 0)
			continue;
		if (tokens > most_tokens - sum)
			return wlb_fail(error, "document %zu brings the micro-batch above 2^30 tokens: split it", i);
		sum += tokens;
	}
	return 0;
}

static int check_places(const struct wlb_shard_batch *batch, struct wlb_error *error)
{
	for (size_t i = 0; i < batch->count; i++) {
		const struct wlb_place *place = &batch->places[i];
		if (place->ranks < 1 || place->first_rank < 0 || place->first_rank > batch->ranks - place->ranks)
			return wlb_fail(error, "document %zu is on %d ranks from rank %d on: they must lie in 0 to %d",
			                i, place->ranks, place->first_rank, batch->ranks - 1);
	}
	return 0;
}

/* Returns the rank of a chunk: c, or 2 x ranks - 1 - c where that is lower. */
static int32_t owner(int32_t chunk, int32_t ranks)
{
	return chunk < ranks ? chunk : 2 * ranks - 1 - chunk;
}

static void add_documents(struct wlb_shard_builder *builder, const struct wlb_shard_batch *batch,
                          const struct wlb_cuts *cuts)
{
	for (size_t i = 0; i < batch->count; i++) {
		int32_t ranks = wlb_shard_ranks_of(batch, i), start = 0;
		const uint8_t *longer = &cuts->longer[cuts->first_chunk[i]];
		for (int32_t c = 0; c < 2 * ranks; c++) {
			int32_t count = (int32_t)(batch->tokens[i] / (2 * ranks)) + longer[c];
			int32_t rank = wlb_shard_first_rank(batch, i) + owner(c, ranks);
			wlb_shard_builder_add(builder, (struct wlb_rank_span){(int32_t)i, rank, start, count});
			start += count;
		}
	}
}

static int shard_documents(const struct wlb_shard_batch *batch, struct wlb_shard_memory *memory,
                           struct wlb_shard_result *result)
{
	struct wlb_cuts cuts;
	struct wlb_shard_builder builder;
	if (wlb_cuts_init(&cuts, batch, memory) < 0 ||
	    wlb_shard_builder_init(&builder, batch, memory, result, cuts.first_chunk[batch->count]) < 0)
		return -1;
	add_documents(&builder, batch, &cuts);
	return wlb_shard_builder_finish(&builder, batch, WLB_SHARDING_DOCUMENT);
}

/* The first chunks are a token longer: the first `ranks` of them belong to different ranks, and so do the next. */
static void add_sequence(struct wlb_shard_builder *builder, const struct wlb_shard_batch *batch)
{
	int32_t chunks = 2 * batch->ranks, start = 0;
	int64_t sum = 0;
	size_t i = 0;
	for (size_t d = 0; d < batch->count; d++)
		sum += batch->tokens[d];
	for (int32_t c = 0; c < chunks; c++) {
		int64_t space = sum / chunks + (c < sum % chunks);
		while (space > 0) {
			int64_t left = batch->tokens[i] - start;
			int32_t count = (int32_t)(left < space ? left : space);
			wlb_shard_builder_add(builder,
			                      (struct wlb_rank_span){(int32_t)i, owner(c, batch->ranks), start, count});
			space -= count;
			start += count;
			if (start == batch->tokens[i]) {
				start = 0;
				i++;
			}
		}
	}
}

static int shard_sequence(const struct wlb_shard_batch *batch, struct wlb_shard_memory *memory,
                          struct wlb_shard_result *result)
{
	struct wlb_shard_builder builder;
	size_t spans = batch->count + 2 * (size_t)batch->ranks;
	if (wlb_shard_builder_init(&builder, batch, memory, result, spans) < 0)
		return -1;
	add_sequence(&builder, batch);
	return wlb_shard_builder_finish(&builder, batch, WLB_SHARDING_SEQUENCE);
}

static double slowest_s(const struct wlb_shards *shards, const struct wlb_kernel_time *time)
{
	double slowest = 0.0;
	for (int32_t r = 0; r < shards->ranks; r++) {
		double seconds = wlb_shards_seconds(shards, r, time);
		slowest = seconds > slowest ? seconds : slowest;
	}
	return slowest;
}

/* Returns the index in memory->made of the resulting shards, or -1 if out of memory. `time` is used for adaptive. */
static int make_shards(enum wlb_sharding sharding, const struct wlb_kernel_time *time,
                       const struct wlb_shard_batch *batch, struct wlb_shard_memory *memory)
{
	struct wlb_shard_result *sequence = &memory->made[0], *document = &memory->made[1];
	if (sharding != WLB_SHARDING_DOCUMENT && shard_sequence(batch, memory, sequence) < 0)
		return -1;
	if (sharding != WLB_SHARDING_SEQUENCE && shard_documents(batch, memory, document) < 0)
		return -1;
	if (sharding == WLB_SHARDING_ADAPTIVE)
		return slowest_s(&document->shards, time) < slowest_s(&sequence->shards, time);
	return sharding == WLB_SHARDING_DOCUMENT;
}

static void memory_free(struct wlb_shard_memory *memory)
{
	struct wlb_shard_result *results[] = {&memory->kept, &memory->made[0], &memory->made[1]};
	struct wlb_buffer *buffers[] = {&memory->first_chunk, &memory->longer, &memory->documents, &memory->pairs,
	                                &memory->spans,       &memory->newest, &memory->keys,      &memory->next};
	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
		wlb_buffer_free(&results[i]->shards_buffer);
		wlb_buffer_free(&results[i]->first_shard_buffer);
		wlb_buffer_free(&results[i]->first_row_buffer);
	}
	for (size_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++)
		wlb_buffer_free(buffers[i]);
	free(memory);
}

static int shard(enum wlb_sharding sharding, const struct wlb_kernel_time *time, const struct wlb_shard_batch *batch,
                 struct wlb_shards *shards, struct wlb_error *error)
{
	struct wlb_shard_memory *memory = shards->memory != NULL ? shards->memory : calloc(1, sizeof(*memory));
	int made = memory == NULL ? -1 : make_shards(sharding, time, batch, memory);
	if (made < 0) {
		if (memory != NULL && shards->memory == NULL)
			memory_free(memory);
		return wlb_fail(error, "out of memory while sharding %zu documents over %d ranks", batch->count,
		                batch->ranks);
	}
	struct wlb_shard_result old = memory->kept;
	memory->kept = memory->made[made];
	memory->made[made] = old;
	*shards = memory->kept.shards;
	shards->memory = memory;
	return 0;
}

int wlb_shard(enum wlb_sharding sharding, const struct wlb_kernel_time *time, const int64_t *tokens, size_t count,
              int32_t ranks, struct wlb_shards *shards, struct wlb_error *error)
{
	struct wlb_shard_batch batch = {.tokens = tokens, .count = count, .ranks = ranks};
	if ((unsigned)sharding >= SHARDINGS)
		return wlb_fail(error, "sharding %d is not known: use one of enum wlb_sharding", (int)sharding);
	if (check_batch(&batch, error) < 0)
		return -1;
	if (sharding == WLB_SHARDING_ADAPTIVE && time == NULL)
		return wlb_fail(error, "adaptive sharding needs the times of kernels: none are given");
	if (sharding == WLB_SHARDING_ADAPTIVE && wlb_kernel_time_check(time, error) < 0)
		return -1;
	return shard(sharding, time, &batch, shards, error);
}

int wlb_shard_places(const int64_t *tokens, const struct wlb_place *places, size_t count, int32_t ranks,
                     int32_t micro_batch, struct wlb_shards *shards, struct wlb_error *error)
{
	struct wlb_shard_batch batch = {
		.tokens = tokens, .places = places, .count = count, .ranks = ranks, .micro_batch = micro_batch};
	if (check_batch(&batch, error) < 0 || check_places(&batch, error) < 0)
		return -1;
	return shard(WLB_SHARDING_DOCUMENT, NULL, &batch, shards, error);
}

void wlb_shards_free(struct wlb_shards *shards)
{
	if (shards == NULL)
		return;
	if (shards->memory != NULL)
		memory_free(shards->memory);
	*shards = (struct wlb_shards){0};
}
