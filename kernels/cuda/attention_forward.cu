/*
 * Computes attention: FlashAttention-2 (Dao 2023). A block of threads has a tile of queries of one head, visits the
 * keys that they see in blocks, and keeps the softmax of what it has visited (Milakov & Gimelshein 2018) in registers.
 * The values of a block of keys are copied while its scores are computed, the next keys while its values are
 * multiplied.
 */
#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/attention_check.h"
#include "kernels/cuda/attention_hopper.h"

/* What a lane has of its rows: lane / 4 + 8 half of each 16. */
template <int row_tiles, int dim> struct running {
	float out[row_tiles][dim / 8][4]; /* not yet divided by sum */
	float row_max[row_tiles][2];      /* largest score so far */
	float sum[row_tiles][2];          /* of exp(score - row_max) over this lane's columns */
};

template <int row_tiles, int dim> __device__ static inline void start(struct running<row_tiles, dim> &state)
{
#pragma unroll
	for (int m = 0; m < row_tiles; m++) {
#pragma unroll
		for (int half = 0; half < 2; half++) {
			state.row_max[m][half] = -INFINITY;
			state.sum[m][half] = 0;
		}
#pragma unroll
		for (int i = 0; i < dim / 8 * 4; i++)
			state.out[m][i / 4][i % 4] = 0;
	}
}

/* One row of 16: scores become exp(score - largest so far), and what was gathered is rescaled to it. A row that has
 * seen no key yet has no largest score; 0 stands for it, so that exp is 0 and not undefined. */
template <int columns, int dim_tiles>
__device__ static inline void online_softmax_row(float (&scores)[columns][4], int half, float (&out)[dim_tiles][4],
                                                 float &row_max, float &sum, float scale_log2)
{
	float peak = row_max;
#pragma unroll
	for (int n = 0; n < columns; n++)
		peak = fmaxf(peak, fmaxf(scores[n][2 * half], scores[n][2 * half + 1]));
	peak = wlb_row_max(peak);
	const float base = peak == -INFINITY ? 0.0f : peak * scale_log2;
	const float shrink = exp2f(fmaf(row_max, scale_log2, -base));
	row_max = peak;
	if (__any_sync(0xffffffffu, shrink != 1)) { /* seldom after the first blocks */
		sum *= shrink;
#pragma unroll
		for (int n = 0; n < dim_tiles; n++) {
			out[n][2 * half] *= shrink;
			out[n][2 * half + 1] *= shrink;
		}
	}
#pragma unroll
	for (int n = 0; n < columns; n++)
#pragma unroll
		for (int i = 2 * half; i < 2 * half + 2; i++) {
			scores[n][i] = exp2f(fmaf(scores[n][i], scale_log2, -base));
			sum += scores[n][i];
		}
}

/* The scores of the columns from `first` on; `row` is the warp's first query, counted in the segment. */
template <bool is_capped, int row_tiles, int columns, int dim>
__device__ static inline void online_softmax(struct running<row_tiles, dim> &state,
                                             float (&scores)[row_tiles][columns][4], const struct wlb_segment &segment,
                                             int window, int row, int first, float softcap)
{
	const float scale_log2 = wlb_attention_scale<dim>() * WLB_LOG2_E;
	const bool all_seen = wlb_all_seen(segment, window, row, row + 16 * row_tiles - 1, first, first + 8 * columns);
#pragma unroll
	for (int m = 0; m < row_tiles; m++) {
		if (is_capped)
			wlb_cap_scores<dim>(scores[m], softcap);
		if (!all_seen) {
			const int query = row + 16 * m + threadIdx.x % 32 / 4;
			const struct wlb_seen seen[2] = {wlb_keys_seen_from(segment, window, query, first),
			                                 wlb_keys_seen_from(segment, window, query + 8, first)};
			wlb_mask(scores[m], seen);
		}
#pragma unroll
		for (int half = 0; half < 2; half++)
			online_softmax_row(scores[m], half, state.out[m], state.row_max[m][half], state.sum[m][half],
			                   scale_log2);
	}
}

/* Puts out = gathered / sum into the warp's rows of the tile, and stores lse = row_max + log(sum). A sum that is not a
 * number stays one. */
template <typename element, int dim, int row_tiles>
__device__ static inline void finish(struct running<row_tiles, dim> &state, element *tile, int row, float *lse,
                                     int lse_stride, int rows)
{
	const int lane = threadIdx.x % 32;
#pragma unroll
	for (int m = 0; m < row_tiles; m++) {
		float inverse[2];
#pragma unroll
		for (int half = 0; half < 2; half++) {
			const int query = row + 16 * m + 8 * half + lane / 4;
			const float sum = wlb_row_sum(state.sum[m][half]);
			inverse[half] = sum > 0 ? 1 / sum : sum;
			if (lane % 4 == 0 && query < rows)
				lse[(int64_t)query * lse_stride] =
					fmaf(state.row_max[m][half], wlb_attention_scale<dim>(), logf(sum));
		}
		wlb_tile_put<element, dim>(tile, row + 16 * m, 0, state.out[m], inverse);
	}
}

/* Shared memory: the queries (at the end: out), a block of keys, a block of values. */
template <typename element, int dim, bool is_capped>
__global__ static void __launch_bounds__(wlb_attention_sizes<element, dim>::forward_threads)
	attention_forward(const struct wlb_cuda_attention a)
{
	typedef wlb_attention_sizes<element, dim> sizes;
	constexpr int rows = sizes::rows, columns = sizes::forward_columns, threads = sizes::forward_threads;
	constexpr int row_tiles = sizes::forward_row_tiles;
	element *const q_tile = (element *)wlb_dynamic_shared;
	element *const k_tile = q_tile + rows * dim, *const v_tile = k_tile + columns * dim;
	const int head = blockIdx.x % a.heads, kv_head = head / (a.heads / a.kv_heads);
	const struct wlb_query_tile tile = a.query_tiles[blockIdx.x / a.heads];
	const struct wlb_segment segment = a.segments[tile.segment];
	const int64_t token = (int64_t)segment.q_start + tile.first;
	const int valid = min(rows, segment.q_count - tile.first), row = threadIdx.x / 32 * 16 * row_tiles;
	const int begin = wlb_first_key_seen(segment, a.window, tile.first);
	const int end = wlb_keys_seen(segment, tile.first + valid - 1);
	const int warp_begin = wlb_first_key_seen(segment, a.window, tile.first + row);
	const int warp_end = wlb_keys_seen(segment, tile.first + row + 16 * row_tiles - 1);
	const element *k = wlb_head_at<const element, dim>(a.k, segment.k_start, kv_head);
	const element *v = wlb_head_at<const element, dim>(a.v, segment.k_start, kv_head);
	if (begin < end) {
		wlb_tile_copy<element, dim, rows, threads>(q_tile, wlb_head_at<const element, dim>(a.q, token, head),
		                                           a.q.stride, valid);
		wlb_tile_copy<element, dim, columns, threads>(k_tile, k + begin * a.k.stride, a.k.stride,
		                                              segment.k_count - begin);
		wlb_cp_async_commit();
	}
	struct running<row_tiles, dim> state;
	start(state);
	for (int first = begin; first < end; first += columns) {
		const bool is_seen = first < warp_end && first + columns > warp_begin; /* by the warp's queries */
		wlb_cp_async_wait<0>();
		__syncthreads(); /* the keys have arrived, and no thread needs the values before them */
		wlb_tile_copy<element, dim, columns, threads>(v_tile, v + first * a.v.stride, a.v.stride,
		                                              segment.k_count - first);
		wlb_cp_async_commit();
		float scores[row_tiles][columns / 8][4];
		if (is_seen)
			wlb_multiply_rows<dim>(scores, q_tile, row, k_tile);
		wlb_cp_async_wait<0>();
		__syncthreads(); /* the values have arrived, and no thread needs the keys */
		if (first + columns < end)
			wlb_tile_copy<element, dim, columns, threads>(k_tile, k + (first + columns) * a.k.stride,
			                                              a.k.stride, segment.k_count - first - columns);
		wlb_cp_async_commit();
		if (is_seen) {
			online_softmax<is_capped>(state, scores, segment, a.window, tile.first + row, first, a.softcap);
			wlb_multiply_columns<dim>(state.out, scores, v_tile, 0);
		}
	}
	__syncwarp(); /* no lane needs the warp's queries any more */
	finish<element>(state, q_tile, row, a.lse + token * a.heads + head, a.heads, valid);
	__syncthreads();
	wlb_tile_store<element, dim, threads>(wlb_head_at<element, dim>(a.out, token, head), a.out.stride, q_tile,
	                                      valid);
}

template <typename element, int dim>
static void launch(struct wlb_device *device, const struct wlb_cuda_attention &attention)
{
	typedef wlb_attention_sizes<element, dim> sizes;
	const auto kernel =
		attention.softcap > 0 ? attention_forward<element, dim, true> : attention_forward<element, dim, false>;
	wlb_attention_launch(device, "attention_forward", (int64_t)attention.query_tile_count * attention.heads,
	                     sizes::forward_threads, sizes::forward_bytes, kernel, attention);
}

int wlb_cuda_attention_forward(struct wlb_device *device, const struct wlb_cuda_attention *attention,
                               struct wlb_error *error)
{
	if (wlb_cuda_attention_check(attention, error) != 0)
		return -1;
	if (attention->query_tile_count == 0)
		return 0;
	if (wlb_cuda_attention_is_hopper(device, attention))
		return wlb_cuda_attention_hopper_forward(device, attention, error);
	WLB_ATTENTION_DISPATCH(launch, *attention, device, *attention);
	return 0;
}
