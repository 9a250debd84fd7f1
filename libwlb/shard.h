/* Where documents are cut for the ranks of context parallelism, and how the pieces become shards. */
#ifndef WLB_SHARD_H
#define WLB_SHARD_H

#include "libwlb/wlb.h"

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
	size_t *first_chunk; /* `count` + 1 */
	uint8_t *longer;
};

/* Cuts every document per document; -1 without memory. Zeroed cuts may be freed. */
int wlb_cuts_init(struct wlb_cuts *cuts, const struct wlb_shard_batch *batch);
void wlb_cuts_free(struct wlb_cuts *cuts);

/* The tokens [start, start + count) of a document on a rank. */
struct wlb_cut_piece {
	int32_t document;
	int32_t rank;
	int32_t start;
	int32_t count;
};

/* Makes shards of pieces, which come in the order of their tokens. */
struct wlb_shard_builder {
	struct wlb_shards made;
	struct wlb_cut_piece *pieces; /* `count` of them, each a shard */
	size_t count;
	int64_t *newest; /* of each rank: the number of its last piece, or -1 */
};

/* Room for `pieces`; -1 without memory. A zeroed builder may be freed. */
int wlb_shard_builder_init(struct wlb_shard_builder *builder, const struct wlb_shard_batch *batch, size_t pieces);
void wlb_shard_builder_free(struct wlb_shard_builder *builder);

/* A piece without tokens makes no shard; one that goes on where the last of its rank ended makes that longer. */
void wlb_shard_builder_add(struct wlb_shard_builder *builder, struct wlb_cut_piece piece);

/* Puts the shards in *shards in place of what was there; -1 without memory, *shards being as it was. */
int wlb_shard_builder_finish(struct wlb_shard_builder *builder, const struct wlb_shard_batch *batch,
                             enum wlb_sharding sharding, struct wlb_shards *shards);

#endif
