/*
 * Computes the gradients of attention: FlashAttention-2 (Dao 2023), with the scores computed again from q, k and lse.
 * With P = softmax(q k^T scale), delta = rowsum(d_out out) and dS = P (d_out v^T - delta):
 * d_v = P^T d_out, d_q = scale dS k, d_k = scale dS^T q.
 *
 * There are two kernels: one has tiles of queries and makes d_q and delta, then one has tiles of keys and makes d_k and
 * d_v. So every sum is made by one warp in a fixed order. This costs seven matrix products and not the five of one
 * kernel, which has to add to d_q from many blocks, by atomic sums whose order changes or in a given order of blocks
 * that wait for each other.
 *
 * Both hold two matrices of rows in shared memory and visit pairs of matrices of columns, which are copied while the
 * pair before them is multiplied. Both compute scores with their own rows as rows, so that the probabilities, and dS,
 * are in the registers where the next product needs them.
 */
#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/attention_check.h"
#include "kernels/cuda/attention_hopper.h"
#include "kernels/cuda/attention_query_blocks.cuh"

/* The shared memory of a block: [rows, dim] twice, then two stages of [columns, dim] twice, then two stages of the
 * columns' lse and delta (tiles of keys only). */
template <typename element, int dim> struct shared {
	typedef wlb_attention_sizes<element, dim> sizes;
	static constexpr int rows = sizes::rows, columns = sizes::backward_columns;

	__device__ static element *row_tile(int matrix)
	{
		return (element *)wlb_dynamic_shared + matrix * rows * dim;
	}
	__device__ static element *column_tile(int stage, int matrix)
	{
		return row_tile(2) + (2 * stage + matrix) * columns * dim;
	}
	__device__ static float *statistics(int stage)
	{
		return (float *)column_tile(2, 0) + stage * 2 * columns;
	}
};

/* exp(score - lse), for a score in base 2 and without scale; and lse as it is used there. A query that sees no key has
 * lse = -infinity and only masked scores; 0 stands for it, so that exp is 0. */
template <int dim> __device__ static inline float probability(float score, float lse_log2)
{
	return exp2f(fmaf(score, wlb_attention_scale<dim>() * WLB_LOG2_E, -lse_log2));
}

template <int columns> __device__ static inline void clear(float (&values)[1][columns][4])
{
#pragma unroll
	for (int i = 0; i < columns * 4; i++)
		values[0][i / 4][i % 4] = 0;
}

/* -- tiles of queries: d_q -- */

__device__ static inline float piece_product(const wlb_bf16 *a, const wlb_bf16 *b)
{
	return wlb_bf16_dot(*(const uint4 *)a, *(const uint4 *)b);
}

__device__ static inline float piece_product(const float *a, const float *b)
{
	return wlb_add_products(0, *(const float4 *)a, *(const float4 *)b);
}

/* d_out . out of a row, by the four lanes that have it. d_out is in the tile, out in device memory. */
template <typename element, int dim>
__device__ static inline float row_delta(const element *d_out, int row, const element *out)
{
	constexpr int size = wlb_piece<element>;
	float sum = 0;
#pragma unroll
	for (int piece = threadIdx.x % 4; piece < dim / size; piece += 4)
		sum += piece_product(d_out + wlb_tile_at<element, dim>(row, piece), out + piece * size);
	return wlb_row_sum(sum);
}

/* The statistics of a lane's rows; stores delta for the tiles of keys. `token` is the tile's first row, `row` the
 * warp's first row in the tile. */
template <typename element, int dim>
__device__ static inline void read_statistics(float (&lse_log2)[2], float (&delta)[2],
                                              const struct wlb_cuda_attention &a, int64_t token, int head, int row,
                                              int valid)
{
#pragma unroll
	for (int half = 0; half < 2; half++) {
		const int at = row + threadIdx.x % 32 / 4 + 8 * half;
		const int64_t from = token + min(at, valid - 1);
		const float sum = row_delta<element, dim>(shared<element, dim>::row_tile(1), at,
		                                          wlb_head_at<const element, dim>(a.out, from, head));
		delta[half] = sum;
		lse_log2[half] = wlb_to_log2(a.lse[from * a.heads + head]);
		if (threadIdx.x % 4 == 0 && at < valid)
			a.delta[from * a.heads + head] = sum;
	}
}

/* Adds the columns from `first` on to d_q; `query` is the warp's first row, counted in the segment. */
template <typename element, int dim, bool is_capped>
__device__ static inline void add_keys(float (&d_q)[1][dim / 8][4], int stage, int row, const float (&lse_log2)[2],
                                       const float (&delta)[2], const struct wlb_segment &segment, int window,
                                       int query, int first, float softcap)
{
	typedef shared<element, dim> memory;
	constexpr int columns = memory::columns;
	float scores[1][columns / 8][4], products[1][columns / 8][4];
	wlb_multiply_rows<dim>(scores, memory::row_tile(0), row, memory::column_tile(stage, 0));
	wlb_multiply_rows<dim>(products, memory::row_tile(1), row, memory::column_tile(stage, 1));
	if (is_capped)
		wlb_cap_scores<dim>(scores[0], softcap);
	if (!wlb_all_seen(segment, window, query, query + 15, first, first + columns)) {
		const int mine = query + threadIdx.x % 32 / 4;
		const struct wlb_seen seen[2] = {wlb_keys_seen_from(segment, window, mine, first),
		                                 wlb_keys_seen_from(segment, window, mine + 8, first)};
		wlb_mask(scores[0], seen);
	}
#pragma unroll
	for (int n = 0; n < columns / 8; n++)
#pragma unroll
		for (int i = 0; i < 4; i++)
			products[0][n][i] =
				probability<dim>(scores[0][n][i], lse_log2[i / 2]) * (products[0][n][i] - delta[i / 2]);
	if (is_capped)
		wlb_multiply_cap_slopes<dim>(products[0], scores[0], softcap);
	wlb_multiply_columns<dim>(d_q, products, memory::column_tile(stage, 0), 0);
}

template <typename element, int dim, bool is_capped>
__global__ static void __launch_bounds__(wlb_attention_sizes<element, dim>::rows * 2)
	attention_backward_of_queries(const struct wlb_cuda_attention a)
{
	typedef shared<element, dim> memory;
	constexpr int rows = memory::rows, columns = memory::columns, threads = rows * 2;
	const int head = blockIdx.x % a.heads, kv_head = head / (a.heads / a.kv_heads);
	const struct wlb_query_tile tile = a.query_tiles[blockIdx.x / a.heads];
	const struct wlb_segment segment = a.segments[tile.segment];
	const int64_t token = (int64_t)segment.q_start + tile.first;
	const int valid = min(rows, segment.q_count - tile.first), row = threadIdx.x / 32 * 16;
	const int end = wlb_keys_seen(segment, tile.first + valid - 1);
	const int begin = wlb_first_key_seen(segment, a.window, tile.first);
	const int warp_begin = wlb_first_key_seen(segment, a.window, tile.first + row);
	const int warp_end = wlb_keys_seen(segment, tile.first + row + 15);
	const element *const k = wlb_head_at<const element, dim>(a.k, segment.k_start, kv_head);
	const element *const v = wlb_head_at<const element, dim>(a.v, segment.k_start, kv_head);
	wlb_tile_copy<element, dim, rows, threads>(
		memory::row_tile(0), wlb_head_at<const element, dim>(a.q, token, head), a.q.stride, valid);
	wlb_tile_copy<element, dim, rows, threads>(
		memory::row_tile(1), wlb_head_at<const element, dim>(a.d_out, token, head), a.d_out.stride, valid);
	wlb_cp_async_commit();
	float d_q[1][dim / 8][4], lse_log2[2], delta[2];
	clear(d_q);
	for (int first = begin - columns, stage = 1; first < end; first += columns, stage ^= 1) {
		wlb_cp_async_wait<0>();
		__syncthreads(); /* this stage has arrived, and no thread needs the other */
		if (first + columns < end) {
			const int next = first + columns, left = segment.k_count - next;
			wlb_tile_copy<element, dim, columns, threads>(memory::column_tile(stage ^ 1, 0),
			                                              k + next * a.k.stride, a.k.stride, left);
			wlb_tile_copy<element, dim, columns, threads>(memory::column_tile(stage ^ 1, 1),
			                                              v + next * a.v.stride, a.v.stride, left);
		}
		wlb_cp_async_commit();
		if (first < begin)
			read_statistics<element, dim>(lse_log2, delta, a, token, head, row, valid);
		else if (first < warp_end && first + columns > warp_begin)
			add_keys<element, dim, is_capped>(d_q, stage, row, lse_log2, delta, segment, a.window,
			                                  tile.first + row, first, a.softcap);
	}
	__syncwarp(); /* no lane needs the warp's queries any more */
	const float scale = wlb_attention_scale<dim>(), factor[2] = {scale, scale};
	wlb_tile_put<element, dim>(memory::row_tile(0), row, 0, d_q[0], factor);
	__syncthreads();
	wlb_tile_store<element, dim, threads>(wlb_head_at<element, dim>(a.d_q, token, head), a.d_q.stride,
	                                      memory::row_tile(0), valid);
}

/* -- tiles of keys: d_k and d_v -- */

/* Starts the copy of the queries at a place and of their d_out. Returns what this thread has to put into the stage's
 * statistics: one number of the columns' lse, then delta. */
template <typename element, int dim, int threads>
__device__ static inline float fetch(const struct wlb_query_block &place, const struct wlb_cuda_attention &a,
                                     int kv_head, int stage)
{
	typedef shared<element, dim> memory;
	constexpr int columns = memory::columns;
	const int head = kv_head * (a.heads / a.kv_heads) + place.head;
	const int64_t token = (int64_t)place.segment.q_start + place.first;
	const int left = place.segment.q_count - place.first;
	wlb_tile_copy<element, dim, columns, threads>(
		memory::column_tile(stage, 0), wlb_head_at<const element, dim>(a.q, token, head), a.q.stride, left);
	wlb_tile_copy<element, dim, columns, threads>(memory::column_tile(stage, 1),
	                                              wlb_head_at<const element, dim>(a.d_out, token, head),
	                                              a.d_out.stride, left);
	const int column = threadIdx.x % columns;
	if (threadIdx.x >= 2 * columns || column >= left)
		return 0;
	const int64_t at = (token + column) * a.heads + head;
	return (int)threadIdx.x < columns ? wlb_to_log2(a.lse[at]) : a.delta[at];
}

/* Adds the queries at a place to d_k and d_v; `column` is the first of the columns of both that this warp has. */
template <typename element, int dim, int width, bool is_capped>
__device__ static inline void add_queries(float (&d_k)[1][width][4], float (&d_v)[1][width][4], int stage, int row,
                                          int column, const struct wlb_query_block &place, int window, int key,
                                          float softcap)
{
	typedef shared<element, dim> memory;
	constexpr int columns = memory::columns;
	float scores[1][columns / 8][4], products[1][columns / 8][4];
	wlb_multiply_rows<dim>(scores, memory::row_tile(0), row, memory::column_tile(stage, 0));
	wlb_multiply_rows<dim>(products, memory::row_tile(1), row, memory::column_tile(stage, 1));
	if (is_capped)
		wlb_cap_scores<dim>(scores[0], softcap);
	wlb_mask_queries<columns>(scores[0], place, window, key);
	const float *const lse_log2 = memory::statistics(stage), *const delta = lse_log2 + columns;
#pragma unroll
	for (int i = 0; i < columns / 2; i++)
		products[0][i / 4][i % 4] -= delta[8 * (i / 4) + threadIdx.x % 4 * 2 + i % 2];
	if (is_capped)
		wlb_multiply_cap_slopes<dim>(products[0], scores[0], softcap);
#pragma unroll
	for (int i = 0; i < columns / 2; i++) {
		const int query = 8 * (i / 4) + threadIdx.x % 4 * 2 + i % 2;
		scores[0][i / 4][i % 4] = probability<dim>(scores[0][i / 4][i % 4], lse_log2[query]);
		products[0][i / 4][i % 4] *= scores[0][i / 4][i % 4];
	}
	wlb_multiply_columns<dim>(d_v, scores, memory::column_tile(stage, 1), column);
	wlb_multiply_columns<dim>(d_k, products, memory::column_tile(stage, 0), column);
}

/* Where head_dim is 256, d_k and d_v of 16 keys do not fit the registers of a warp: two warps have half of the columns
 * each, and both compute the scores. */
template <int dim> constexpr int warps_of_row = dim > 128 ? 2 : 1;

template <typename element, int dim, bool is_capped>
__global__ static void __launch_bounds__(wlb_attention_sizes<element, dim>::rows * 2 * warps_of_row<dim>)
	attention_backward_of_keys(const struct wlb_cuda_attention a)
{
	typedef shared<element, dim> memory;
	constexpr int rows = memory::rows, columns = memory::columns, threads = rows * 2 * warps_of_row<dim>;
	constexpr int width = dim / 8 / warps_of_row<dim>;
	const int kv_head = blockIdx.x % a.kv_heads;
	const struct wlb_key_tile tile = a.key_tiles[blockIdx.x / a.kv_heads];
	const int row = threadIdx.x / 32 % (rows / 16) * 16, column = threadIdx.x / 32 / (rows / 16) * width;
	float d_k[1][width][4], d_v[1][width][4], statistic = 0;
	clear(d_k);
	clear(d_v);
	struct wlb_query_block now = {}, next = {};
	bool more = tile.readers > 0;
	if (more) {
		wlb_tile_copy<element, dim, rows, threads>(memory::row_tile(0),
		                                           wlb_head_at<const element, dim>(a.k, tile.k_start, kv_head),
		                                           a.k.stride, tile.k_count);
		wlb_tile_copy<element, dim, rows, threads>(memory::row_tile(1),
		                                           wlb_head_at<const element, dim>(a.v, tile.k_start, kv_head),
		                                           a.v.stride, tile.k_count);
		wlb_enter_query_block(next, a, tile);
		statistic = fetch<element, dim, threads>(next, a, kv_head, 0);
		wlb_cp_async_commit();
	}
	for (int stage = 0; more; stage ^= 1) {
		if (threadIdx.x < 2 * columns)
			memory::statistics(stage)[threadIdx.x] = statistic;
		now = next;
		wlb_cp_async_wait<0>();
		__syncthreads(); /* this stage has arrived, and no thread needs the other */
		more = wlb_next_query_block(next, a, tile, columns);
		if (more)
			statistic = fetch<element, dim, threads>(next, a, kv_head, stage ^ 1);
		wlb_cp_async_commit();
		add_queries<element, dim, width, is_capped>(d_k, d_v, stage, row, column, now, a.window,
		                                            tile.k_start + row, a.softcap);
	}
	__syncthreads(); /* no thread needs the keys and values any more */
	const float scale = wlb_attention_scale<dim>(), factors[2] = {scale, scale}, ones[2] = {1, 1};
	wlb_tile_put<element, dim>(memory::row_tile(0), row, 8 * column, d_k[0], factors);
	wlb_tile_put<element, dim>(memory::row_tile(1), row, 8 * column, d_v[0], ones);
	__syncthreads();
	wlb_tile_store<element, dim, threads>(wlb_head_at<element, dim>(a.d_k, tile.k_start, kv_head), a.d_k.stride,
	                                      memory::row_tile(0), tile.k_count);
	wlb_tile_store<element, dim, threads>(wlb_head_at<element, dim>(a.d_v, tile.k_start, kv_head), a.d_v.stride,
	                                      memory::row_tile(1), tile.k_count);
}

template <typename element, int dim>
static void launch_queries(struct wlb_device *device, const struct wlb_cuda_attention &attention)
{
	typedef wlb_attention_sizes<element, dim> sizes;
	const auto kernel = attention.softcap > 0 ? attention_backward_of_queries<element, dim, true>
	                                          : attention_backward_of_queries<element, dim, false>;
	wlb_attention_launch(device, "attention_backward", (int64_t)attention.query_tile_count * attention.heads,
	                     sizes::rows * 2, sizes::backward_bytes, kernel, attention);
}

template <typename element, int dim>
static void launch_keys(struct wlb_device *device, const struct wlb_cuda_attention &attention)
{
	typedef wlb_attention_sizes<element, dim> sizes;
	const auto kernel = attention.softcap > 0 ? attention_backward_of_keys<element, dim, true>
	                                          : attention_backward_of_keys<element, dim, false>;
	wlb_attention_launch(device, "attention_backward", (int64_t)attention.key_tile_count * attention.kv_heads,
	                     sizes::rows * 2 * warps_of_row<dim>, sizes::backward_bytes, kernel, attention);
}

int wlb_cuda_attention_backward(struct wlb_device *device, const struct wlb_cuda_attention *attention,
                                struct wlb_error *error)
{
	if (wlb_cuda_attention_check(attention, error) != 0 || wlb_cuda_attention_check_backward(attention, error) != 0)
		return -1;
	if (wlb_cuda_attention_is_hopper(device, attention))
		return wlb_cuda_attention_hopper_backward(device, attention, error);
	if (attention->query_tile_count > 0)
		WLB_ATTENTION_DISPATCH(launch_queries, *attention, device, *attention);
	if (attention->key_tile_count > 0)
		WLB_ATTENTION_DISPATCH(launch_keys, *attention, device, *attention);
	return 0;
}
