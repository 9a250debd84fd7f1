/*
 * The blocks of work of attention on a device: each block of threads takes one tile. They are lists and not a grid of
 * the longest document by the number of documents, so that documents of very different lengths start no empty block,
 * and the longest tiles come first, so that the short ones fill the gaps at the end (list scheduling by longest
 * processing time, Graham 1969). The lists are made on the host from the segments, once for all layers of a
 * micro-batch; neither the passes nor the heads nor the windows of layers are in them: a block of threads passes over
 * what its window leaves out.
 */
#ifndef KERNELS_ATTENTION_TILES_H
#define KERNELS_ATTENTION_TILES_H

#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wlb_sized_query_tile;
struct wlb_sized_key_tile;

/* Tiles of queries are for the forward pass and d_q; tiles of keys for d_k and d_v, which one block sums over all of
 * its readers. Zero it before the first use. A list is NULL at first. All memory is kept from one use to the next: a
 * call that needs no more than those before it allocates nothing. */
struct wlb_attention_tiles {
	struct wlb_query_tile *queries;
	struct wlb_key_tile *keys;
	int32_t *readers; /* segments */
	int query_tiles, key_tiles, reader_count;
	size_t query_capacity, key_capacity, reader_capacity;
	/* Private: what is sorted while the lists are made. */
	struct wlb_sized_query_tile *sized_queries;
	struct wlb_sized_key_tile *sized_keys;
	int *by_start;
	size_t sized_query_capacity, sized_key_capacity, by_start_capacity;
};

/* Makes the tiles of `count` segments (host memory), of at most `rows` queries or keys each. Every query of a segment
 * is in one query tile, also where it attends to no key. Every key in the range of a segment is in one key tile, also
 * where no query sees it (its gradient is 0). The order is longest first, then by segment and row. Returns -1 with the
 * reason if out of memory, if a number of a segment is negative (but for q_offset) or a row is beyond 2^29; the lists
 * are then empty. */
int wlb_attention_tiles_make(struct wlb_attention_tiles *tiles, const struct wlb_segment *segments, int count, int rows,
                             struct wlb_error *error);
void wlb_attention_tiles_free(struct wlb_attention_tiles *tiles);

/* Returns the number of keys that query i of the segment sees: the keys 0 .. visible - 1 of its range. */
static inline int32_t wlb_visible_keys(const struct wlb_segment *segment, int32_t i)
{
	const int64_t visible = (int64_t)segment->q_offset + i + 1;
	return visible < 0 ? 0 : visible > segment->k_count ? segment->k_count : (int32_t)visible;
}

#ifdef __cplusplus
}
#endif

#endif
