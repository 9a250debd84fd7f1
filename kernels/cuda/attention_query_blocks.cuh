/*
 * How a block of threads iterates over the queries that attend to a tile of keys: segment by segment, each head of the
 * group, from the first query that sees a key of the tile to the last. Of a reader that sees none within the window one
 * block is visited, whose scores are all masked: the lists of tiles do not know windows.
 */
#ifndef WLB_CUDA_ATTENTION_QUERY_BLOCKS_CUH
#define WLB_CUDA_ATTENTION_QUERY_BLOCKS_CUH

#include "kernels/cuda/attention.cuh"

/* How far a block has come in the queries that attend to its keys. */
struct wlb_query_block {
	struct wlb_segment segment;
	int reader, head;      /* counted in the tile and in the group */
	int start, first, end; /* queries of the segment */
};

__device__ static inline void wlb_enter_query_block(struct wlb_query_block &place, const struct wlb_cuda_attention &a,
                                                    const struct wlb_key_tile &tile)
{
	place.segment = a.segments[a.readers[tile.first_reader + place.reader]];
	const int key = max(0, tile.k_start - place.segment.k_start);
	place.first = place.start = max(0, key - place.segment.q_offset);
	const int last_key = min(tile.k_start + tile.k_count - place.segment.k_start, place.segment.k_count) - 1;
	place.end = a.window == 0 ? place.segment.q_count
	                          : min(place.segment.q_count, last_key + a.window - place.segment.q_offset);
}

/* Goes on by `columns` queries; returns whether there are any. */
__device__ static inline bool wlb_next_query_block(struct wlb_query_block &place, const struct wlb_cuda_attention &a,
                                                   const struct wlb_key_tile &tile, int columns)
{
	place.first += columns;
	if (place.first < place.end)
		return true;
	place.first = place.start;
	if (++place.head < a.heads / a.kv_heads)
		return true;
	place.head = 0;
	if (++place.reader >= tile.readers)
		return false;
	wlb_enter_query_block(place, a, tile);
	return true;
}

/* What the warp's keys, `key` on in the tile's k, are to the queries from place.first on. */
template <int columns>
__device__ static inline void wlb_mask_queries(float (&scores)[columns / 8][4], const struct wlb_query_block &place,
                                               int window, int key)
{
	const struct wlb_segment &segment = place.segment;
	const int queries = segment.q_count - place.first, offset = segment.q_offset + place.first;
	key -= segment.k_start;
	if (key >= 0 && key + 15 < segment.k_count && key + 15 <= offset && queries >= columns &&
	    (window == 0 || key + window >= offset + columns))
		return;
	struct wlb_seen seen[2];
#pragma unroll
	for (int half = 0; half < 2; half++) {
		const int mine = key + threadIdx.x % 32 / 4 + 8 * half;
		seen[half].low = mine - offset;
		seen[half].high = mine >= 0 && mine < segment.k_count ? queries : 0;
		if (window > 0)
			seen[half].high = min(seen[half].high, mine + window - offset);
	}
	wlb_mask(scores, seen);
}

/* lse as exp(score - lse) needs it, in base 2. A query that sees no key has lse = -infinity and only masked scores; 0
 * stands for it, so that exp is 0. */
__device__ static inline float wlb_to_log2(float lse)
{
	return lse == -INFINITY ? 0.0f : lse * WLB_LOG2_E;
}

#endif
