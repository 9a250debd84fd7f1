/*
 * Computes attention on compute capability 9.0: FlashAttention-3 (Shah et al. 2024). The grid has a block for each
 * processor, which takes the next tile of queries when it has none, so that the first keys of a tile are copied while
 * the tile before it ends. The two warpgroups of consumers issue products in turn (ping-pong), so that one multiplies
 * while the other computes the softmax; and each computes the softmax of a block of keys while the values of the block
 * before it are multiplied.
 */
#include "kernels/cuda/attention_hopper.cuh"

/* Keys of a block, and stages of keys and of values. */
enum { KEYS = 128, STAGES = 2 };

/* Numbers of barriers. A name that all stages share has the number of the first stage; the further
 * stages have the numbers after it. */
enum {
	QUERIES_FULL,
	QUERIES_EMPTY,
	KEYS_FULL,
	KEYS_EMPTY = KEYS_FULL + STAGES,
	VALUES_FULL = KEYS_EMPTY + STAGES,
	VALUES_EMPTY = VALUES_FULL + STAGES,
	BARRIERS = VALUES_EMPTY + STAGES,
};

/* Shared memory: queries, stages of keys, stages of values, barriers, the number of the tile. */
template <int dim> struct memory {
	static constexpr int tile_bytes = wlb_matrix_bytes<dim, WLB_HOPPER_ROWS>;
	static constexpr int block_bytes = wlb_matrix_bytes<dim, KEYS>;
	static constexpr int barriers_at = tile_bytes + 2 * STAGES * block_bytes;
	static constexpr int number_at = barriers_at + BARRIERS * (int)sizeof(wlb_mbarrier);
	static constexpr int bytes = number_at + 16;

	__device__ static unsigned char *queries()
	{
		return wlb_dynamic_shared;
	}
	__device__ static unsigned char *keys(int stage)
	{
		return wlb_dynamic_shared + tile_bytes + stage * block_bytes;
	}
	__device__ static unsigned char *values(int stage)
	{
		return keys(STAGES + stage);
	}
	__device__ static int *number() /* of the tile */
	{
		return (int *)(wlb_dynamic_shared + number_at);
	}
	__device__ static wlb_mbarrier *barrier(int number)
	{
		return (wlb_mbarrier *)(wlb_dynamic_shared + barriers_at) + number;
	}
};

/* -- producer -- */

/* Copies the blocks of keys of a tile and their values, last block first. */
template <int dim>
__device__ static inline void load_blocks(const struct wlb_hopper_attention &p, const struct wlb_head_tile &tile,
                                          struct wlb_stage<STAGES> &stage)
{
	typedef memory<dim> m;
	for (int block = tile.blocks - 1; block >= tile.first_block; block--, stage.advance()) {
		const int64_t row = (int64_t)tile.segment.k_start + block * KEYS;
		wlb_mbarrier *full = m::barrier(KEYS_FULL + stage.index);
		wlb_mbarrier_wait(m::barrier(KEYS_EMPTY + stage.index), stage.parity ^ 1);
		wlb_mbarrier_arrive_expect_tx(full, m::block_bytes);
		wlb_load_rows<dim, KEYS>(m::keys(stage.index), &p.k, tile.kv_head * dim, row, full);
		full = m::barrier(VALUES_FULL + stage.index);
		wlb_mbarrier_wait(m::barrier(VALUES_EMPTY + stage.index), stage.parity ^ 1);
		wlb_mbarrier_arrive_expect_tx(full, m::block_bytes);
		wlb_load_rows<dim, KEYS>(m::values(stage.index), &p.v, tile.kv_head * dim, row, full);
	}
}

/* Takes tiles and tells the consumers their numbers, with the queries; -1 after the last. By one thread. */
template <int dim> __device__ static inline void produce(const struct wlb_hopper_attention &p)
{
	typedef memory<dim> m;
	const int tiles = p.a.query_tile_count * p.a.heads;
	struct wlb_stage<STAGES> stage;
	unsigned tile_parity = 0;
	for (int number = blockIdx.x, next; number >= 0; number = next, tile_parity ^= 1) {
		wlb_mbarrier_wait(m::barrier(QUERIES_EMPTY), tile_parity ^ 1);
		*m::number() = next = number < tiles ? number : -1;
		const struct wlb_head_tile tile =
			next >= 0 ? wlb_head_tile_of<KEYS>(p.a, number) : (struct wlb_head_tile){};
		if (tile.first_block == tile.blocks) {
			wlb_mbarrier_arrive(m::barrier(QUERIES_FULL));
		} else {
			wlb_mbarrier_arrive_expect_tx(m::barrier(QUERIES_FULL), m::tile_bytes);
			wlb_load_rows<dim, WLB_HOPPER_ROWS>(m::queries(), &p.q, tile.head * dim,
			                                    (int64_t)tile.segment.q_start + tile.first,
			                                    m::barrier(QUERIES_FULL));
		}
		if (next >= 0)
			next = (int)gridDim.x + atomicAdd(p.tiles_taken, 1);
		load_blocks<dim>(p, tile, stage);
	}
}

/* -- consumers -- */

/* What a lane has of its rows: lane / 4 + 8 half of the warp's 16. */
template <int dim> struct running {
	float out[dim / 8][4]; /* not yet divided by sum */
	float row_max[2];      /* largest score so far */
	float sum[2];          /* of exp(score - row_max) over this lane's columns */
};

/* Scores become exp(score - largest so far); returns by what the sums before them are multiplied. A row that has seen
 * no key yet has no largest score; 0 stands for it, so that exp is 0 and not undefined. */
__device__ static inline float online_softmax_row(float (&scores)[KEYS / 8][4], int half, float &row_max, float &sum,
                                                  float scale_log2)
{
	float peaks[2] = {row_max, -INFINITY}, sums[2] = {0, 0};
#pragma unroll
	for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
		for (int i = 0; i < 2; i++)
			peaks[i] = fmaxf(peaks[i], scores[n][2 * half + i]);
	const float peak = wlb_row_max(fmaxf(peaks[0], peaks[1]));
	const float base = peak == -INFINITY ? 0.0f : peak * scale_log2;
	const float shrink = wlb_exp2(fmaf(row_max, scale_log2, -base));
	row_max = peak;
#pragma unroll
	for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
		for (int i = 0; i < 2; i++) {
			float &score = scores[n][2 * half + i];
			score = wlb_exp2(fmaf(score, scale_log2, -base));
			sums[i] += score;
		}
	sum = fmaf(sum, shrink, sums[0] + sums[1]);
	return shrink;
}

/* Masks the scores of a block of keys, where a row of the warpgroup does not see all of them, and adds them to the
 * online softmax. */
template <int dim>
__device__ static inline void online_softmax(struct running<dim> &state, float (&scores)[KEYS / 8][4],
                                             float (&shrink)[2], const struct wlb_head_tile &tile, int row, int block)
{
	const int first = block * KEYS, group_row = tile.first + row / 64 * 64;
	if (!wlb_all_seen(tile.segment, tile.window, group_row, group_row + 63, first, first + KEYS)) {
		const int query = tile.first + row + threadIdx.x % 32 / 4;
		const struct wlb_seen seen[2] = {wlb_keys_seen_from(tile.segment, tile.window, query, first),
		                                 wlb_keys_seen_from(tile.segment, tile.window, query + 8, first)};
		wlb_mask(scores, seen);
	}
	const float scale_log2 = wlb_attention_scale<dim>() * WLB_LOG2_E;
#pragma unroll
	for (int half = 0; half < 2; half++)
		shrink[half] = online_softmax_row(scores, half, state.row_max[half], state.sum[half], scale_log2);
}

template <int dim> __device__ static inline void rescale(struct running<dim> &state, const float (&shrink)[2])
{
	if (!__any_sync(0xffffffffu, shrink[0] != 1 || shrink[1] != 1)) /* seldom so after the first blocks */
		return;
#pragma unroll
	for (int n = 0; n < dim / 8; n++)
#pragma unroll
		for (int i = 0; i < 4; i++)
			state.out[n][i] *= shrink[i / 2];
}

/* Waits for the values of a block; where it is the last of the segment's keys, the rows past them become 0. */
template <int dim>
__device__ static inline void await_values(const struct wlb_stage<STAGES> &stage, const struct wlb_head_tile &tile,
                                           int block, int consumer)
{
	typedef memory<dim> m;
	const int valid = tile.segment.k_count - block * KEYS;
	wlb_mbarrier_wait(m::barrier(VALUES_FULL + stage.index), stage.parity);
	if (valid < KEYS) {
		wlb_clear_rows<dim, KEYS>(m::values(stage.index), valid);
		wlb_rows_cleared(consumer);
	}
}

/* Computes state for one tile; it sees at least one block of keys. `row` is the warp's first row in the tile. */
template <int dim>
__device__ static inline void consume(struct running<dim> &state, struct wlb_stage<STAGES> &stage,
                                      const struct wlb_head_tile &tile, int consumer, int row)
{
	typedef memory<dim> m;
	const uint64_t queries = wlb_wgmma_descriptor(m::queries() + consumer * 64 * WLB_ROW_BYTES, 0);
	const int other = 1 - consumer;
	float scores[KEYS / 8][4], shrink[2];
	uint32_t probabilities[KEYS / 16][4];
	struct wlb_stage<STAGES> before = stage; /* of the block before */
	wlb_mbarrier_wait(m::barrier(KEYS_FULL + stage.index), stage.parity);
	wlb_wgmma_fence();
	wlb_wgmma_rows<dim, WLB_HOPPER_ROWS, KEYS>(scores, queries, wlb_wgmma_descriptor(m::keys(stage.index), 0));
	wlb_wgmma_commit();
	wlb_wgmma_wait<0>();
	wlb_release_stage(m::barrier(KEYS_EMPTY + stage.index));
	online_softmax<dim>(state, scores, shrink, tile, row, tile.blocks - 1);
	wlb_pack_fragments(probabilities, scores);
	for (int block = tile.blocks - 2; block >= tile.first_block; block--) {
		stage.advance();
		wlb_mbarrier_wait(m::barrier(KEYS_FULL + stage.index), stage.parity);
		await_values<dim>(before, tile, block + 1, consumer);
		wlb_named_barrier_sync<2 * WLB_WARPGROUP>(WLB_TURN_BARRIER + consumer);
		wlb_wgmma_fence();
		wlb_wgmma_rows<dim, WLB_HOPPER_ROWS, KEYS>(scores, queries,
		                                           wlb_wgmma_descriptor(m::keys(stage.index), 0));
		wlb_wgmma_commit();
		wlb_wgmma_add_columns(state.out, probabilities,
		                      wlb_wgmma_descriptor(m::values(before.index), wlb_slab_bytes<KEYS>));
		wlb_wgmma_commit();
		wlb_named_barrier_arrive<2 * WLB_WARPGROUP>(WLB_TURN_BARRIER + other);
		wlb_wgmma_wait<1>(); /* the scores */
		wlb_release_stage(m::barrier(KEYS_EMPTY + stage.index));
		online_softmax<dim>(state, scores, shrink, tile, row, block);
		wlb_fence_values(scores);
		wlb_wgmma_wait<0>();
		wlb_wgmma_fence_operands(probabilities);
		wlb_release_stage(m::barrier(VALUES_EMPTY + before.index));
		rescale(state, shrink);
		wlb_pack_fragments(probabilities, scores);
		before = stage;
	}
	wlb_release_stage(m::barrier(QUERIES_EMPTY));
	await_values<dim>(before, tile, tile.first_block, consumer);
	wlb_wgmma_fence();
	wlb_wgmma_add_columns(state.out, probabilities,
	                      wlb_wgmma_descriptor(m::values(before.index), wlb_slab_bytes<KEYS>));
	wlb_wgmma_commit();
	wlb_wgmma_wait<0>();
	wlb_wgmma_fence_operands(probabilities);
	wlb_release_stage(m::barrier(VALUES_EMPTY + before.index));
	stage.advance();
}

template <int dim> __device__ static inline void start(struct running<dim> &state)
{
#pragma unroll
	for (int half = 0; half < 2; half++) {
		state.row_max[half] = -INFINITY;
		state.sum[half] = 0;
	}
#pragma unroll
	for (int i = 0; i < dim / 8 * 4; i++)
		state.out[i / 4][i % 4] = 0;
}

/* Stores out = gathered / sum and lse = row_max + log(sum) of the warp's rows. A sum that is not a number stays one. */
template <int dim>
__device__ static inline void finish(struct running<dim> &state, const struct wlb_cuda_attention &a,
                                     const struct wlb_head_tile &tile, int row)
{
	const int mine = row + threadIdx.x % 32 / 4, rows = tile.segment.q_count - tile.first;
	const int64_t token = (int64_t)tile.segment.q_start + tile.first + mine;
	float inverse[2];
#pragma unroll
	for (int half = 0; half < 2; half++) {
		const float sum = wlb_row_sum(state.sum[half]);
		inverse[half] = sum > 0 ? 1 / sum : sum;
		if (threadIdx.x % 4 == 0 && mine + 8 * half < rows)
			a.lse[(token + 8 * half) * a.heads + tile.head] =
				fmaf(state.row_max[half], wlb_attention_scale<dim>(), logf(sum));
	}
	wlb_store_fragments(wlb_head_at<wlb_bf16, dim>(a.out, token, tile.head), a.out.stride, rows - row, state.out,
	                    inverse);
}

template <int dim> __device__ static inline void consume_all(const struct wlb_hopper_attention &p)
{
	typedef memory<dim> m;
	const int consumer = threadIdx.x / WLB_WARPGROUP - 1, row = threadIdx.x / 32 * 16 - 64;
	struct wlb_stage<STAGES> stage;
	unsigned tile_parity = 0;
	if (consumer == 1)
		wlb_named_barrier_arrive<2 * WLB_WARPGROUP>(WLB_TURN_BARRIER);
	for (;; tile_parity ^= 1) {
		wlb_mbarrier_wait(m::barrier(QUERIES_FULL), tile_parity);
		const int number = *m::number();
		if (number < 0)
			return;
		const struct wlb_head_tile tile = wlb_head_tile_of<KEYS>(p.a, number);
		struct running<dim> state;
		start(state);
		if (tile.first_block < tile.blocks)
			consume(state, stage, tile, consumer, row);
		else
			wlb_release_stage(m::barrier(QUERIES_EMPTY));
		finish(state, p.a, tile, row);
	}
}

template <int dim>
__global__ static void __launch_bounds__(WLB_HOPPER_THREADS, 1)
	attention_forward(const __grid_constant__ struct wlb_hopper_attention p)
{
	typedef memory<dim> m;
	if (threadIdx.x == 0) {
		wlb_mbarrier_init(m::barrier(QUERIES_FULL), 1);
		wlb_mbarrier_init(m::barrier(QUERIES_EMPTY), WLB_CONSUMER_WARPS);
		for (int stage = 0; stage < STAGES; stage++) {
			wlb_mbarrier_init(m::barrier(KEYS_FULL + stage), 1);
			wlb_mbarrier_init(m::barrier(KEYS_EMPTY + stage), WLB_CONSUMER_WARPS);
			wlb_mbarrier_init(m::barrier(VALUES_FULL + stage), 1);
			wlb_mbarrier_init(m::barrier(VALUES_EMPTY + stage), WLB_CONSUMER_WARPS);
		}
		wlb_mbarrier_init_fence();
	}
	__syncthreads();
	if (threadIdx.x < WLB_WARPGROUP) {
		wlb_setmaxnreg_dec<WLB_PRODUCER_REGISTERS + 16>();
		if (threadIdx.x == 0)
			produce<dim>(p);
	} else {
		wlb_setmaxnreg_inc<WLB_CONSUMER_REGISTERS - 8>();
		consume_all<dim>(p);
	}
}

template <int dim> static void launch(struct wlb_device *device, const struct wlb_hopper_attention &p)
{
	const int64_t tiles = (int64_t)p.a.query_tile_count * p.a.heads;
	const int64_t processors = wlb_cuda_of(device)->processors;
	wlb_hopper_launch(device, "attention_forward", tiles < processors ? tiles : processors, memory<dim>::bytes,
	                  attention_forward<dim>, p);
}

int wlb_cuda_attention_hopper_forward(struct wlb_device *device, const struct wlb_cuda_attention *a,
                                      struct wlb_error *error)
{
	struct wlb_hopper_attention p;
	if (wlb_hopper_map(&p, a, error) != 0)
		return -1;
	p.tiles_taken = (int32_t *)wlb_cuda_scratch(device, sizeof(*p.tiles_taken), "attention_forward");
	if (p.tiles_taken == NULL)
		return 0; /* the error is kept for synchronize() */
	wlb_cuda_zero(device, p.tiles_taken, sizeof(*p.tiles_taken));
	if (a->head_dim == 64)
		launch<64>(device, p);
	else
		launch<128>(device, p);
	return 0;
}
