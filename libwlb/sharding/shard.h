/* Where documents are cut for the ranks of context parallelism, and how the spans become shards. */
#ifndef LIBWLB_SHARDING_SHARD_H
#define LIBWLB_SHARDING_SHARD_H

#include "libwlb/capacity.h"
#include "libwlb/wlb.h"

/* Shards and the memory of their arrays. */
struct wlb_shard_result {
	struct wlb_shards shards;
	struct wlb_room shards_room, first_shard_room, first_row_room;
};

/* What wlb_shards.memory is: the caller's shards lie in `kept`, and new ones are made in `made`, so that those stay as
 * they are until these are whole. All else is in use during a call only. Allocated zeroed. */
struct wlb_shard_memory {
	struct wlb_shard_result kept;
	struct wlb_shard_result made[2]; /* adaptive makes both */
	struct wlb_room first_chunk, longer, documents, pairs;
	struct wlb_room spans, newest, keys, next;
};

/* The documents of a micro-batch. */
struct wlb_shard_batch {
	const int64_t *tokens;
	const struct wlb_place *places; /* NULL: every document over all ranks */
	size_t count;
	int32_t ranks;
	int32_t micro_batch; /* with places: documents of others have no place here */
};

/* Ranks of a document, 0 where it belongs to another micro-batch, and the first of them. */
int32_t wlb_shard_group(const struct wlb_shard_batch *batch, size_t document);
int32_t wlb_shard_first(const struct wlb_shard_batch *batch, size_t document);

/* Which chunks are one token longer than the shortest of their document: longer[first_chunk[i] + c] is 1 for chunk c,
 * of 2 x its ranks, of document i. */
struct wlb_cuts {
	const size_t *first_chunk; /* `count` + 1 */
	const uint8_t *longer;
};

/* Cuts every document per document; -1 without memory. The arrays are the memory's, valid until the next cuts. */
int wlb_cuts_init(struct wlb_cuts *cuts, const struct wlb_shard_batch *batch, struct wlb_shard_memory *memory);

/* The tokens [start, start + count) of a document on a rank. */
struct wlb_rank_span {
	int32_t document;
	int32_t rank;
	int32_t start;
	int32_t count;
};

/* Makes shards of spans, which come in the order of their tokens. */
struct wlb_shard_builder {
	struct wlb_shard_memory *memory;
	struct wlb_shard_result *result;
	struct wlb_rank_span *spans; /* `count` of them, each a shard */
	size_t count;
	int64_t *newest; /* of each rank: the number of its last span, or -1 */
};

/* Makes *result, with room for `spans`; -1 without memory. One builder of a memory at a time. */
int wlb_shard_builder_init(struct wlb_shard_builder *builder, const struct wlb_shard_batch *batch,
                           struct wlb_shard_memory *memory, struct wlb_shard_result *result, size_t spans);

/* A span without tokens makes no shard; one that goes on where the last of its rank ended makes that longer. */
void wlb_shard_builder_add(struct wlb_shard_builder *builder, struct wlb_rank_span span);

/* Now the result is whole; -1 without memory. */
int wlb_shard_builder_finish(struct wlb_shard_builder *builder, const struct wlb_shard_batch *batch,
                             enum wlb_sharding sharding);

#endif
