/*
 * Computes the gradients of attention on compute capability 9.0, by the method of attention_backward.cu: one kernel has
 * tiles of queries and makes d_q and delta, then one has tiles of keys and makes d_k and d_v. Every sum is made by one
 * warpgroup in a fixed order. Both kernels have their own rows as rows of the scores, so that the probabilities, and
 * dS, are in the registers where the next product needs them.
 */
#include "kernels/cuda/attention_hopper.cuh"
#include "kernels/cuda/attention_query_blocks.cuh"

enum { STAGES = 4 };

/* Rows of a block of columns: as many as the registers of the sums leave. */
template <int dim> constexpr int columns_of = dim == 64 ? 128 : 64;

/* Shared memory: two matrices of a tile, stages of two matrices of columns, statistics of the columns (lse in base 2,
 * then delta) for each stage, barriers. */
template <int dim> struct memory {
	static constexpr int columns = columns_of<dim>;
	static constexpr int tile_bytes = wlb_matrix_bytes<dim, WLB_HOPPER_ROWS>;
	static constexpr int block_bytes = wlb_matrix_bytes<dim, columns>;
	static constexpr int statistics_at = 2 * tile_bytes + 2 * STAGES * block_bytes;
	static constexpr int barriers_at = statistics_at + STAGES * 2 * columns * (int)sizeof(float);
	static constexpr int bytes = barriers_at + 128;

	__device__ static unsigned char *tile(int matrix)
	{
		return wlb_dynamic_shared + matrix * tile_bytes;
	}
	__device__ static unsigned char *block(int stage, int matrix)
	{
		return wlb_dynamic_shared + 2 * tile_bytes + (2 * stage + matrix) * block_bytes;
	}
	__device__ static float *statistics(int stage)
	{
		return (float *)(wlb_dynamic_shared + statistics_at) + stage * 2 * columns;
	}
	__device__ static wlb_mbarrier *barrier(int number)
	{
		return (wlb_mbarrier *)(wlb_dynamic_shared + barriers_at) + number;
	}
};

/* Numbers of barriers. A name that all stages share has the number of the first stage; the further
 * stages have the numbers after it. */
enum { TILE_FULL, FULL, EMPTY = FULL + STAGES, BARRIERS = EMPTY + STAGES };

/* `full_arrivals`: of the threads that fill a stage. */
template <int dim> __device__ static inline void make_barriers(int full_arrivals)
{
	typedef memory<dim> m;
	static_assert(BARRIERS * sizeof(wlb_mbarrier) <= m::bytes - m::barriers_at, "barriers fit");
	if (threadIdx.x == 0) {
		wlb_mbarrier_init(m::barrier(TILE_FULL), 1);
		for (int stage = 0; stage < STAGES; stage++) {
			wlb_mbarrier_init(m::barrier(FULL + stage), full_arrivals);
			wlb_mbarrier_init(m::barrier(EMPTY + stage), WLB_CONSUMER_WARPS);
		}
		wlb_mbarrier_init_fence();
	}
	__syncthreads();
}

/* Starts the copies of both matrices of a tile; one thread calls it. */
template <int dim>
__device__ static inline void load_tile(const struct wlb_tensor_map *first, const struct wlb_tensor_map *second,
                                        int column, int64_t row)
{
	typedef memory<dim> m;
	wlb_mbarrier *const full = m::barrier(TILE_FULL);
	wlb_mbarrier_arrive_expect_tx(full, 2 * m::tile_bytes);
	wlb_load_rows<dim, WLB_HOPPER_ROWS>(m::tile(0), first, column, row, full);
	wlb_load_rows<dim, WLB_HOPPER_ROWS>(m::tile(1), second, column, row, full);
}

template <int dim>
__device__ static inline void load_block(int stage, const struct wlb_tensor_map *first,
                                         const struct wlb_tensor_map *second, int column, int64_t row)
{
	typedef memory<dim> m;
	wlb_mbarrier *const full = m::barrier(FULL + stage);
	wlb_mbarrier_arrive_expect_tx(full, 2 * m::block_bytes);
	wlb_load_rows<dim, m::columns>(m::block(stage, 0), first, column, row, full);
	wlb_load_rows<dim, m::columns>(m::block(stage, 1), second, column, row, full);
}

/* Waits for a stage, of which `valid` rows are of the segment; the rows past them become 0 in both matrices. */
template <int dim>
__device__ static inline void await_block(const struct wlb_stage<STAGES> &stage, int valid, int consumer)
{
	typedef memory<dim> m;
	wlb_mbarrier_wait(m::barrier(FULL + stage.index), stage.parity);
	if (valid < m::columns) {
		wlb_clear_rows<dim, m::columns>(m::block(stage.index, 0), valid);
		wlb_clear_rows<dim, m::columns>(m::block(stage.index, 1), valid);
		wlb_rows_cleared(consumer);
	}
}

template <int columns> __device__ static inline void clear(float (&values)[columns][4])
{
#pragma unroll
	for (int i = 0; i < columns * 4; i++)
		values[i / 4][i % 4] = 0;
}

/* exp(score - lse), for a score without scale. */
template <int dim> __device__ static inline float probability(float score, float lse_log2)
{
	return wlb_exp2(fmaf(score, wlb_attention_scale<dim>() * WLB_LOG2_E, -lse_log2));
}

/* -- tiles of queries: d_q -- */

template <int dim>
__device__ static inline void produce_keys(const struct wlb_hopper_attention &p, const struct wlb_head_tile &tile)
{
	struct wlb_stage<STAGES> stage;
	if (tile.first_block == tile.blocks)
		return;
	load_tile<dim>(&p.q, &p.d_out, tile.head * dim, (int64_t)tile.segment.q_start + tile.first);
	for (int block = tile.first_block; block < tile.blocks; block++, stage.advance()) {
		wlb_mbarrier_wait(memory<dim>::barrier(EMPTY + stage.index), stage.parity ^ 1);
		load_block<dim>(stage.index, &p.k, &p.v, tile.kv_head * dim,
		                (int64_t)tile.segment.k_start + block * columns_of<dim>);
	}
}

/* The fragments of the warp's 16 rows, from `row` on, of a matrix of a tile. */
template <int dim>
__device__ static inline void load_fragments(uint32_t (&to)[dim / 16][4], const unsigned char *matrix, int row)
{
	const int lane = threadIdx.x % 32;
	row += lane % 16;
#pragma unroll
	for (int k = 0; k < dim / 16; k++) {
		const int piece = (2 * k + lane / 16) % 8;
		wlb_ldmatrix_x4(to[k], matrix + k / 4 * wlb_slab_bytes<WLB_HOPPER_ROWS> + row * WLB_ROW_BYTES +
		                               (piece ^ (row & 7)) * 16);
	}
}

/* What a lane needs of its rows lane / 4 + 8 half of the warp. */
struct statistics {
	float lse_log2[2], delta[2]; /* delta: d_out . out */
};

/* Computes delta, by the four lanes of a row, and stores it for the tiles of keys. `row` is the warp's first row in the
 * tile. */
template <int dim>
__device__ static inline struct statistics read_statistics(const struct wlb_cuda_attention &a,
                                                           const struct wlb_head_tile &tile, int row)
{
	struct statistics s;
#pragma unroll
	for (int half = 0; half < 2; half++) {
		const int at = tile.first + row + threadIdx.x % 32 / 4 + 8 * half;
		const int64_t token = (int64_t)tile.segment.q_start + min(at, tile.segment.q_count - 1);
		const uint4 *const d_out = (const uint4 *)wlb_head_at<const wlb_bf16, dim>(a.d_out, token, tile.head);
		const uint4 *const out = (const uint4 *)wlb_head_at<const wlb_bf16, dim>(a.out, token, tile.head);
		float sum = 0;
#pragma unroll
		for (int piece = 0; piece < dim / 8; piece += 4)
			sum += wlb_bf16_dot(d_out[piece + threadIdx.x % 4], out[piece + threadIdx.x % 4]);
		s.delta[half] = wlb_row_sum(sum);
		s.lse_log2[half] = wlb_to_log2(a.lse[token * a.heads + tile.head]);
		if (threadIdx.x % 4 == 0 && at < tile.segment.q_count)
			a.delta[token * a.heads + tile.head] = s.delta[half];
	}
	return s;
}

/* Scores become probabilities. */
template <int dim, int tiles>
__device__ static inline void make_probabilities(float (&scores)[tiles][4], const struct statistics &s)
{
#pragma unroll
	for (int n = 0; n < tiles; n++)
#pragma unroll
		for (int i = 0; i < 4; i++)
			scores[n][i] = probability<dim>(scores[n][i], s.lse_log2[i / 2]);
}

/* Probabilities become dS, by the products d_out v^T. */
template <int tiles>
__device__ static inline void make_d_scores(float (&scores)[tiles][4], const float (&products)[tiles][4],
                                            const struct statistics &s)
{
#pragma unroll
	for (int n = 0; n < tiles; n++)
#pragma unroll
		for (int i = 0; i < 4; i++)
			scores[n][i] *= products[n][i] - s.delta[i / 2];
}

/* Masks the scores of a block of keys, where a row of the warpgroup does not see all of them. */
template <int tiles>
__device__ static inline void mask_keys(float (&scores)[tiles][4], const struct wlb_head_tile &tile, int row, int first)
{
	const int group_row = tile.first + row / 64 * 64;
	if (wlb_all_seen(tile.segment, tile.window, group_row, group_row + 63, first, first + 8 * tiles))
		return;
	const int query = tile.first + row + threadIdx.x % 32 / 4;
	const struct wlb_seen seen[2] = {wlb_keys_seen_from(tile.segment, tile.window, query, first),
	                                 wlb_keys_seen_from(tile.segment, tile.window, query + 8, first)};
	wlb_mask(scores, seen);
}

/* A warpgroup's queries and their d_out as left operands: in registers with heads of 128, so that shared memory is read
 * less. With heads of 64 the blocks of keys are larger, and the operands are read from shared memory: ptxas of
 * CUDA 13.0 gives dS the registers of the fragments of d_out, which the next block needs. */
template <int dim> struct rows {
	uint32_t queries[dim / 16][4], d_out[dim / 16][4];

	__device__ void load(int, int row)
	{
		load_fragments<dim>(queries, memory<dim>::tile(0), row);
		load_fragments<dim>(d_out, memory<dim>::tile(1), row);
	}
};

template <> struct rows<64> {
	uint64_t queries, d_out;

	__device__ void load(int consumer, int)
	{
		queries = wlb_wgmma_descriptor(memory<64>::tile(0) + consumer * 64 * WLB_ROW_BYTES, 0);
		d_out = wlb_wgmma_descriptor(memory<64>::tile(1) + consumer * 64 * WLB_ROW_BYTES, 0);
	}
};

template <int dim, int tiles>
__device__ static inline void multiply_keys(float (&d)[tiles][4], const uint32_t (&a)[dim / 16][4], uint64_t keys)
{
	wlb_wgmma_rows<dim, 8 * tiles>(d, a, keys);
}

template <int dim, int tiles>
__device__ static inline void multiply_keys(float (&d)[tiles][4], uint64_t a, uint64_t keys)
{
	wlb_wgmma_rows<dim, WLB_HOPPER_ROWS, 8 * tiles>(d, a, keys);
}

/* Computes d_q of a warpgroup; `row` is the warp's first row in the tile. */
template <int dim>
__device__ static inline void consume_keys(float (&d_q)[dim / 8][4], const struct rows<dim> &rows,
                                           const struct statistics &s, const struct wlb_head_tile &tile, int consumer,
                                           int row)
{
	typedef memory<dim> m;
	const int group_row = tile.first + consumer * 64;
	const int seen = wlb_keys_seen(tile.segment, min(group_row + 63, tile.segment.q_count - 1));
	const int seen_from = wlb_first_key_seen(tile.segment, tile.window, group_row);
	struct wlb_stage<STAGES> stage;
	int before = -1; /* the stage of the block before, whose products may be under way */
	float scores[columns_of<dim> / 8][4], products[columns_of<dim> / 8][4];
	uint32_t d_scores[columns_of<dim> / 16][4] = {};
	for (int block = tile.first_block; block < tile.blocks; block++, stage.advance()) {
		const int first = block * columns_of<dim>;
		if (first >= seen || first + columns_of<dim> <= seen_from) { /* only the other warpgroup sees them */
			wlb_mbarrier_wait(m::barrier(FULL + stage.index), stage.parity);
			wlb_release_stage(m::barrier(EMPTY + stage.index));
			continue;
		}
		await_block<dim>(stage, tile.segment.k_count - first, consumer);
		wlb_wgmma_fence();
		multiply_keys<dim>(scores, rows.queries, wlb_wgmma_descriptor(m::block(stage.index, 0), 0));
		wlb_wgmma_commit();
		multiply_keys<dim>(products, rows.d_out, wlb_wgmma_descriptor(m::block(stage.index, 1), 0));
		wlb_wgmma_commit();
		wlb_wgmma_wait<1>(); /* the scores, and d_q of the block before */
		if (before >= 0)
			wlb_release_stage(m::barrier(EMPTY + before));
		wlb_wgmma_fence_operands(d_scores);
		mask_keys(scores, tile, row, first);
		make_probabilities<dim>(scores, s);
		wlb_fence_values(scores);
		wlb_wgmma_wait<0>();
		make_d_scores(scores, products, s);
		wlb_pack_fragments(d_scores, scores);
		wlb_wgmma_fence();
		wlb_wgmma_add_columns(d_q, d_scores,
		                      wlb_wgmma_descriptor(m::block(stage.index, 0), wlb_slab_bytes<columns_of<dim>>));
		wlb_wgmma_commit();
		before = stage.index;
	}
	wlb_wgmma_wait<0>();
	wlb_wgmma_fence_operands(d_scores);
}

template <int dim>
__device__ static inline void make_d_q(const struct wlb_hopper_attention &p, const struct wlb_head_tile &tile,
                                       int consumer, int row)
{
	typedef memory<dim> m;
	float d_q[dim / 8][4];
	clear(d_q);
	const struct statistics s = read_statistics<dim>(p.a, tile, row);
	if (tile.first_block < tile.blocks) {
		struct rows<dim> rows;
		wlb_mbarrier_wait(m::barrier(TILE_FULL), 0);
		rows.load(consumer, row);
		consume_keys<dim>(d_q, rows, s, tile, consumer, row);
	}
	const float scale = wlb_attention_scale<dim>(), factor[2] = {scale, scale};
	const int64_t token = (int64_t)tile.segment.q_start + tile.first + row + threadIdx.x % 32 / 4;
	wlb_store_fragments(wlb_head_at<wlb_bf16, dim>(p.a.d_q, token, tile.head), p.a.d_q.stride,
	                    tile.segment.q_count - tile.first - row, d_q, factor);
}

template <int dim>
__global__ static void __launch_bounds__(WLB_HOPPER_THREADS, 1)
	attention_backward_of_queries(const __grid_constant__ struct wlb_hopper_attention p)
{
	make_barriers<dim>(1);
	const struct wlb_head_tile tile = wlb_head_tile_of<columns_of<dim>>(p.a, blockIdx.x);
	if (threadIdx.x < WLB_WARPGROUP) {
		wlb_setmaxnreg_dec<WLB_PRODUCER_REGISTERS>();
		if (threadIdx.x == 0)
			produce_keys<dim>(p, tile);
	} else {
		wlb_setmaxnreg_inc<WLB_CONSUMER_REGISTERS>();
		make_d_q<dim>(p, tile, threadIdx.x / WLB_WARPGROUP - 1, threadIdx.x / 32 * 16 - 64);
	}
}

/* -- tiles of keys: d_k and d_v -- */

/* Copies what the consumers need of a place: by thread 0 the queries and their d_out, by all lanes of the warp the
 * statistics. */
template <int dim>
__device__ static inline void load_queries(const struct wlb_hopper_attention &p, const struct wlb_query_block &place,
                                           int kv_head, int stage)
{
	typedef memory<dim> m;
	const int head = kv_head * (p.a.heads / p.a.kv_heads) + place.head;
	const int64_t token = (int64_t)place.segment.q_start + place.first;
	if (threadIdx.x == 0)
		load_block<dim>(stage, &p.q, &p.d_out, head * dim, token);
	float *const statistics = m::statistics(stage);
	for (int column = threadIdx.x; column < columns_of<dim>; column += 32) {
		const bool valid = place.first + column < place.segment.q_count;
		const int64_t at = (token + column) * p.a.heads + head;
		statistics[column] = valid ? wlb_to_log2(p.a.lse[at]) : 0.0f;
		statistics[columns_of<dim> + column] = valid ? p.a.delta[at] : 0.0f;
	}
	wlb_mbarrier_arrive(m::barrier(FULL + stage));
}

/* By the lanes of one warp. */
template <int dim>
__device__ static inline void produce_queries(const struct wlb_hopper_attention &p, const struct wlb_key_tile &tile,
                                              int kv_head)
{
	struct wlb_stage<STAGES> stage;
	struct wlb_query_block place = {};
	if (threadIdx.x == 0)
		load_tile<dim>(&p.k, &p.v, kv_head * dim, tile.k_start);
	wlb_enter_query_block(place, p.a, tile);
	do {
		wlb_mbarrier_wait(memory<dim>::barrier(EMPTY + stage.index), stage.parity ^ 1);
		load_queries<dim>(p, place, kv_head, stage.index);
		stage.advance();
	} while (wlb_next_query_block(place, p.a, tile, columns_of<dim>));
}

/* Scores become probabilities. */
template <int dim, int tiles>
__device__ static inline void make_probabilities(float (&scores)[tiles][4], const float *lse_log2)
{
#pragma unroll
	for (int n = 0; n < tiles; n++) {
		const float2 pair = *(const float2 *)(lse_log2 + 8 * n + threadIdx.x % 4 * 2);
#pragma unroll
		for (int i = 0; i < 4; i++)
			scores[n][i] = probability<dim>(scores[n][i], i % 2 == 0 ? pair.x : pair.y);
	}
}

/* Products d_out v^T become dS. */
template <int tiles>
__device__ static inline void make_d_scores(const float (&probabilities)[tiles][4], float (&products)[tiles][4],
                                            const float *delta)
{
#pragma unroll
	for (int n = 0; n < tiles; n++) {
		const float2 pair = *(const float2 *)(delta + 8 * n + threadIdx.x % 4 * 2);
#pragma unroll
		for (int i = 0; i < 4; i++)
			products[n][i] = probabilities[n][i] * (products[n][i] - (i % 2 == 0 ? pair.x : pair.y));
	}
}

/* d_k and d_v of a warpgroup's 64 keys. */
template <int dim> struct gradients {
	float d_k[dim / 8][4], d_v[dim / 8][4];
};

/* Adds the queries at a place. `row` is the warp's first row. d_v is not begun before dS is there: with the products of
 * the next place under way beside those of this one, the sums do not fit the registers. */
template <int dim>
__device__ static inline void add_queries(struct gradients<dim> &gradients, const struct wlb_query_block &place,
                                          int window, int stage, const struct wlb_key_tile &tile, int consumer, int row)
{
	typedef memory<dim> m;
	float scores[columns_of<dim> / 8][4], products[columns_of<dim> / 8][4];
	uint32_t probabilities[columns_of<dim> / 16][4], d_scores[columns_of<dim> / 16][4];
	const int rows_at = consumer * 64 * WLB_ROW_BYTES;
	const unsigned char *const queries = m::block(stage, 0), *const d_out = m::block(stage, 1);
	wlb_wgmma_fence();
	wlb_wgmma_rows<dim, WLB_HOPPER_ROWS, columns_of<dim>>(scores, wlb_wgmma_descriptor(m::tile(0) + rows_at, 0),
	                                                      wlb_wgmma_descriptor(queries, 0));
	wlb_wgmma_commit();
	wlb_wgmma_rows<dim, WLB_HOPPER_ROWS, columns_of<dim>>(products, wlb_wgmma_descriptor(m::tile(1) + rows_at, 0),
	                                                      wlb_wgmma_descriptor(d_out, 0));
	wlb_wgmma_commit();
	wlb_wgmma_wait<1>(); /* the scores */
	wlb_mask_queries<columns_of<dim>>(scores, place, window, tile.k_start + row);
	make_probabilities<dim>(scores, m::statistics(stage));
	wlb_fence_values(scores);
	wlb_wgmma_wait<0>(); /* the products of d_out and v */
	make_d_scores(scores, products, m::statistics(stage) + columns_of<dim>);
	wlb_pack_fragments(probabilities, scores);
	wlb_pack_fragments(d_scores, products);
	wlb_wgmma_fence();
	wlb_wgmma_add_columns(gradients.d_v, probabilities,
	                      wlb_wgmma_descriptor(d_out, wlb_slab_bytes<columns_of<dim>>));
	wlb_wgmma_add_columns(gradients.d_k, d_scores, wlb_wgmma_descriptor(queries, wlb_slab_bytes<columns_of<dim>>));
	wlb_wgmma_commit();
	wlb_wgmma_wait<0>();
	wlb_wgmma_fence_operands(probabilities);
	wlb_wgmma_fence_operands(d_scores);
	wlb_release_stage(m::barrier(EMPTY + stage));
}

/* Whether no query of a place sees a key of the warpgroup, whose first key is `key`, counted in k. */
template <int dim> __device__ static inline bool sees_nothing(const struct wlb_query_block &place, int window, int key)
{
	key -= place.segment.k_start;
	const int position = place.segment.q_offset + place.first; /* of the first query */
	return key >= place.segment.k_count || key > position + columns_of<dim> - 1 ||
	       (window > 0 && key + 63 <= position - window);
}

template <int dim>
__device__ static inline void consume_queries(struct gradients<dim> &gradients, const struct wlb_cuda_attention &a,
                                              const struct wlb_key_tile &tile, int consumer, int row)
{
	typedef memory<dim> m;
	struct wlb_stage<STAGES> stage;
	struct wlb_query_block place = {};
	wlb_mbarrier_wait(m::barrier(TILE_FULL), 0);
	wlb_enter_query_block(place, a, tile);
	do {
		if (sees_nothing<dim>(place, a.window, tile.k_start + consumer * 64)) {
			wlb_mbarrier_wait(m::barrier(FULL + stage.index), stage.parity);
			wlb_release_stage(m::barrier(EMPTY + stage.index));
		} else {
			await_block<dim>(stage, place.segment.q_count - place.first, consumer);
			add_queries<dim>(gradients, place, a.window, stage.index, tile, consumer, row);
		}
		stage.advance();
	} while (wlb_next_query_block(place, a, tile, columns_of<dim>));
}

template <int dim>
__device__ static inline void make_d_k_d_v(const struct wlb_cuda_attention &a, const struct wlb_key_tile &tile,
                                           int kv_head, int consumer, int row)
{
	struct gradients<dim> gradients;
	clear(gradients.d_k);
	clear(gradients.d_v);
	if (tile.readers > 0)
		consume_queries<dim>(gradients, a, tile, consumer, row);
	const float scale = wlb_attention_scale<dim>(), factors[2] = {scale, scale}, ones[2] = {1, 1};
	const int64_t token = (int64_t)tile.k_start + row + threadIdx.x % 32 / 4;
	wlb_store_fragments(wlb_head_at<wlb_bf16, dim>(a.d_k, token, kv_head), a.d_k.stride, tile.k_count - row,
	                    gradients.d_k, factors);
	wlb_store_fragments(wlb_head_at<wlb_bf16, dim>(a.d_v, token, kv_head), a.d_v.stride, tile.k_count - row,
	                    gradients.d_v, ones);
}

template <int dim>
__global__ static void __launch_bounds__(WLB_HOPPER_THREADS, 1)
	attention_backward_of_keys(const __grid_constant__ struct wlb_hopper_attention p)
{
	make_barriers<dim>(1 + 32);
	const int kv_head = blockIdx.x / p.a.key_tile_count;
	const struct wlb_key_tile tile = p.a.key_tiles[blockIdx.x % p.a.key_tile_count];
	if (threadIdx.x < WLB_WARPGROUP) {
		wlb_setmaxnreg_dec<WLB_PRODUCER_REGISTERS + 16>(); /* it also reads statistics */
		if (threadIdx.x < 32 && tile.readers > 0)
			produce_queries<dim>(p, tile, kv_head);
	} else {
		wlb_setmaxnreg_inc<WLB_CONSUMER_REGISTERS - 8>();
		make_d_k_d_v<dim>(p.a, tile, kv_head, threadIdx.x / WLB_WARPGROUP - 1, threadIdx.x / 32 * 16 - 64);
	}
}

template <int dim> static void launch(struct wlb_device *device, const struct wlb_hopper_attention &p)
{
	if (p.a.query_tile_count > 0)
		wlb_hopper_launch(device, "attention_backward", (int64_t)p.a.query_tile_count * p.a.heads,
		                  memory<dim>::bytes, attention_backward_of_queries<dim>, p);
	if (p.a.key_tile_count > 0)
		wlb_hopper_launch(device, "attention_backward", (int64_t)p.a.key_tile_count * p.a.kv_heads,
		                  memory<dim>::bytes, attention_backward_of_keys<dim>, p);
}

int wlb_cuda_attention_hopper_backward(struct wlb_device *device, const struct wlb_cuda_attention *a,
                                       struct wlb_error *error)
{
	struct wlb_hopper_attention p;
	if (wlb_hopper_map(&p, a, error) != 0)
		return -1;
	if (a->head_dim == 64)
		launch<64>(device, p);
	else
		launch<128>(device, p);
	return 0;
}
