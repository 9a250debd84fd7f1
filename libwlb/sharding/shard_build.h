/* Builds the shards of every rank from the spans of documents. */
#ifndef LIBWLB_SHARDING_SHARD_BUILD_H
#define LIBWLB_SHARDING_SHARD_BUILD_H

#include <stddef.h>
#include <stdint.h>

#include "libwlb/sharding/shard_cut.h"
#include "libwlb/sharding/shard_memory.h"

/* The tokens [start, start + count) of a document on a rank. */
struct wlb_rank_span {
	int32_t document;
	int32_t rank;
	int32_t start;
	int32_t count;
};

/* Builds shards from spans, which must be added in the order of their tokens. */
struct wlb_shard_builder {
	struct wlb_shard_memory *memory;
	struct wlb_shard_result *result;
	struct wlb_rank_span *spans; /* `count` of them, each a shard */
	size_t count;
	int64_t *newest; /* of each rank: the number of its last span, or -1 */
};

/* Starts *result, with space for `spans` spans; returns -1 if out of memory. Only one builder may use a memory at a
 * time. */
int wlb_shard_builder_init(struct wlb_shard_builder *builder, const struct wlb_shard_batch *batch,
                           struct wlb_shard_memory *memory, struct wlb_shard_result *result, size_t spans);

/* A span without tokens adds no shard; a span that continues the last span of its rank extends that shard. */
void wlb_shard_builder_add(struct wlb_shard_builder *builder, struct wlb_rank_span span);

/* Completes the result; returns -1 if out of memory. */
int wlb_shard_builder_finish(struct wlb_shard_builder *builder, const struct wlb_shard_batch *batch,
                             enum wlb_sharding sharding);

#endif
