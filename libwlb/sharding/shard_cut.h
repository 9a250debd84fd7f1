/* Cuts documents for the ranks of context parallelism. */
#ifndef LIBWLB_SHARDING_SHARD_CUT_H
#define LIBWLB_SHARDING_SHARD_CUT_H

#include <stddef.h>
#include <stdint.h>

#include "libwlb/sharding/shard_memory.h"

/* The documents of a micro-batch. */
struct wlb_shard_batch {
	const int64_t *tokens;
	const struct wlb_place *places; /* NULL: every document over all ranks */
	size_t count;
	int32_t ranks;
	int32_t micro_batch; /* used with places: documents of other micro-batches are left out */
};

/* The number of ranks of a document, 0 where it belongs to another micro-batch, and its first rank. */
int32_t wlb_shard_ranks_of(const struct wlb_shard_batch *batch, size_t document);
int32_t wlb_shard_first_rank(const struct wlb_shard_batch *batch, size_t document);

/* Which chunks are one token longer than the shortest of their document: longer[first_chunk[i] + c] is 1 for chunk c,
 * of 2 x its ranks, of document i. */
struct wlb_cuts {
	const size_t *first_chunk; /* `count` + 1 */
	const uint8_t *longer;
};

/* Cuts every document by itself; returns -1 if out of memory. `memory` owns the arrays, which are valid until the next
 * call. */
int wlb_cuts_init(struct wlb_cuts *cuts, const struct wlb_shard_batch *batch, struct wlb_shard_memory *memory);

#endif
