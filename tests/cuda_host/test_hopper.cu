/*
 * The instructions of kernels/cuda/hopper.cuh: a kernel in which one warp copies tiles and a warpgroup multiplies them,
 * compared with plain loops, and with one fault each. Numbers are whole and small, so that every sum is exact.
 */
#include "kernels/bfloat16.h"
#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "tests/cuda_host/capability.h"
#include "tests/cuda_host/trial.h"

using namespace cuda_host;

namespace
{
const int ROWS = 64, SIDE = 128, STAGES = 2, TILES = 5;
const int B_ROWS = (TILES - 1) * SIDE + 72; /* the last tile is not whole */
const int A_BYTES = ROWS * SIDE * 2, TILE_BYTES = SIDE * SIDE * 2;
const int BARRIERS_AT = A_BYTES + STAGES * TILE_BYTES, SHARED_BYTES = BARRIERS_AT + 64;
const int CONSUMERS = 128, THREADS = CONSUMERS + 32;

enum fault {
	NO_FAULT,
	A_IN_REGISTERS, /* no fault: the other form of the product */
	NO_WAIT_FOR_TILE,
	NO_WAIT_FOR_PRODUCTS,
	NO_WAIT_FOR_LAST_PRODUCTS,
	NO_WAIT_FOR_STAGE,
	STAGE_LEFT_TOO_EARLY,
	OTHER_STAGE,
	OTHER_PARITY,
	REGISTERS_CHANGED,
	TOO_MANY_BYTES,
	ONE_THREAD_LESS,
	OTHER_DESCRIPTOR,
	COPY_LEFT_UNDER_WAY,
	UNALIGNED_TILE,
};

struct shared_memory {
	uint8_t *a, *stages;
	wlb_mbarrier *a_full, *full, *empty;
};

__device__ shared_memory divide_shared()
{
	auto *const barriers = (wlb_mbarrier *)(wlb_dynamic_shared + BARRIERS_AT);
	return {wlb_dynamic_shared, wlb_dynamic_shared + A_BYTES, barriers, barriers + 1, barriers + 1 + STAGES};
}

/* Two boxes for every 64 rows: the boxes of the first 64 columns come first. */
__device__ void load(uint8_t *to, const wlb_tensor_map *map, int first_row, int rows, wlb_mbarrier *barrier)
{
	for (int column = 0; column < SIDE; column += 64)
		for (int row = 0; row < rows; row += 64, to += WLB_BOX_BYTES)
			wlb_tma_load_2d(to, map, column, first_row + row, barrier);
}

template <int fault>
__device__ void produce(const shared_memory &shared, const wlb_tensor_map *a, const wlb_tensor_map *b)
{
	wlb_mbarrier_arrive_expect_tx(shared.a_full, A_BYTES + (fault == TOO_MANY_BYTES ? 16 : 0));
	load(shared.a, a, 0, ROWS, shared.a_full);
	for (int tile = 0; tile < TILES + (fault == COPY_LEFT_UNDER_WAY); tile++) {
		const int stage = tile % STAGES, round = tile / STAGES;
		if (round > 0 && fault != NO_WAIT_FOR_STAGE)
			wlb_mbarrier_wait(shared.empty + stage, (round - 1) & 1);
		wlb_mbarrier_arrive_expect_tx(shared.full + stage, TILE_BYTES);
		load(shared.stages + stage * TILE_BYTES + (fault == UNALIGNED_TILE ? 512 : 0), b, tile * SIDE, SIDE,
		     shared.full + stage);
	}
}

/* The thread's fragments of a, for each 16 columns. */
__device__ void read_fragments(uint32_t (&fragments)[8][4], const uint16_t *a)
{
	const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
	for (int k = 0; k < 8; k++)
		for (int i = 0; i < 4; i++)
			fragments[k][i] =
				*(const uint32_t *)(a + (row + i % 2 * 8) * SIDE + column + k * 16 + i / 2 * 8);
}

/* s = a tile^T */
template <int fault>
__device__ void multiply_by_rows(float (&s)[16][4], uint32_t (&a)[8][4], const uint8_t *a_tile, const uint8_t *tile)
{
	wlb_wgmma_fence();
	for (int k = 0; k < 8; k++) {
		const unsigned step = wlb_wgmma_descriptor_step(k % 4 * 32);
		const uint8_t *const b_boxes = tile + k / 4 * 2 * WLB_BOX_BYTES;
		const unsigned row = fault == OTHER_DESCRIPTOR && threadIdx.x == 77 ? 1024 : 0;
		if (fault == A_IN_REGISTERS || fault == REGISTERS_CHANGED)
			wlb_wgmma<1>(s, a[k], wlb_wgmma_descriptor(b_boxes, 0) + step, k > 0);
		else
			wlb_wgmma(s, wlb_wgmma_descriptor(a_tile + k / 4 * WLB_BOX_BYTES + row, 0) + step,
			          wlb_wgmma_descriptor(b_boxes, 0) + step, k > 0);
	}
	wlb_wgmma_commit();
	if (fault == REGISTERS_CHANGED)
		a[3][2] = 0;
}

/* d += s tile, with s rounded to bfloat16. The fragments must stay until the products have been waited for. */
__device__ void multiply_by_columns(float (&d)[16][4], uint32_t (&fragments)[8][4], const float (&s)[16][4],
                                    const uint8_t *tile, bool add)
{
	for (int k = 0; k < 8; k++)
		for (int i = 0; i < 4; i++)
			fragments[k][i] = wlb_pack_bf16(s[2 * k + i / 2][i % 2 * 2], s[2 * k + i / 2][i % 2 * 2 + 1]);
	wlb_wgmma_fence();
	for (int k = 0; k < 8; k++)
		wlb_wgmma<0>(d, fragments[k], wlb_wgmma_descriptor(tile + k * 16 * 128, 2 * WLB_BOX_BYTES),
		             add || k > 0);
	wlb_wgmma_commit();
}

template <int fault> __device__ void consume(const shared_memory &shared, float *out, const uint16_t *a_elements)
{
	uint32_t a[8][4], fragments[8][4];
	float d[16][4] = {};
	read_fragments(a, a_elements);
	wlb_mbarrier_wait(shared.a_full, 0);
	for (int tile = 0; tile < TILES; tile++) {
		const int stage = tile % STAGES, parity = tile / STAGES & 1;
		const uint8_t *const b = shared.stages + (fault == OTHER_STAGE ? 1 - stage : stage) * TILE_BYTES;
		float s[16][4];
		if (fault != NO_WAIT_FOR_TILE)
			wlb_mbarrier_wait(shared.full + stage, fault == OTHER_PARITY ? 1 - parity : parity);
		multiply_by_rows<fault>(s, a, shared.a, b);
		if (fault != NO_WAIT_FOR_PRODUCTS)
			wlb_wgmma_wait<0>();
		multiply_by_columns(d, fragments, s, b, tile > 0);
		if (fault == STAGE_LEFT_TOO_EARLY)
			wlb_mbarrier_arrive(shared.empty + stage);
		if (fault != NO_WAIT_FOR_LAST_PRODUCTS)
			wlb_wgmma_wait<0>();
		if (fault != STAGE_LEFT_TOO_EARLY && (fault != ONE_THREAD_LESS || threadIdx.x != 5))
			wlb_mbarrier_arrive(shared.empty + stage);
	}
	const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
	for (int n = 0; n < 16; n++)
		for (int i = 0; i < 4; i++)
			out[(row + i / 2 * 8) * SIDE + n * 8 + column + i % 2] = d[n][i];
}

template <int fault>
__global__ void product(float *out, const uint16_t *a, const __grid_constant__ wlb_tensor_map a_map,
                        const __grid_constant__ wlb_tensor_map b_map)
{
	const shared_memory shared = divide_shared();
	if (threadIdx.x == 0) {
		wlb_mbarrier_init(shared.a_full, 1);
		for (int stage = 0; stage < STAGES; stage++) {
			wlb_mbarrier_init(shared.full + stage, 1);
			wlb_mbarrier_init(shared.empty + stage, CONSUMERS);
		}
		wlb_mbarrier_init_fence();
	}
	__syncthreads();
	if (threadIdx.x < CONSUMERS)
		consume<fault>(shared, out, a);
	else if (threadIdx.x == CONSUMERS)
		produce<fault>(shared, &a_map, &b_map);
}

/* -- what the host does -- */

uint16_t value(int i)
{
	return wlb_bfloat16_of_float((float)((i * 7 + i / 5) % 5 - 2));
}

/* Values, and after them `more` elements that are not numbers. */
std::vector<int> operand(int rows, int more)
{
	std::vector<int> pairs((size_t)((rows + more) * SIDE / 2), -1);
	for (int i = 0; i < rows * SIDE / 2; i++)
		pairs[(size_t)i] = (int)(value(2 * i) | (uint32_t)value(2 * i + 1) << 16);
	return pairs;
}

wlb_tensor_map map_of(const int *matrix, int rows)
{
	wlb_tensor_map map;
	wlb_error error = {};
	if (wlb_cuda_map_matrix(&map, matrix, rows, SIDE, SIDE, &error) != 0)
		fail_msg("%s", error.message);
	return map;
}

template <int fault, int rows_too_many = 0> std::vector<int> run_product()
{
	const std::vector<int> a_values = operand(ROWS, 0), b_values = operand(B_ROWS, 1);
	int *const a = trial_memory(a_values.size(), a_values), *const b = trial_memory(b_values.size(), b_values);
	int *const out = trial_memory(ROWS * SIDE);
	assert_int_equal(
		cudaFuncSetAttribute(product<fault>, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES),
		cudaSuccess);
	assert_int_equal(trial_launch(1, THREADS, SHARED_BYTES, product<fault>, (float *)out, (const uint16_t *)a,
	                              map_of(a, ROWS), map_of(b, B_ROWS + rows_too_many)),
	                 cudaSuccess);
	const std::vector<int> result = trial_take(out, ROWS * SIDE);
	trial_take(a, 1);
	trial_take(b, 1);
	return result;
}

float number(int row, int column)
{
	return wlb_float_of_bfloat16(value(row * SIDE + column));
}

std::vector<int> expected()
{
	std::vector<float> d(ROWS * SIDE);
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < B_ROWS; j++) {
			float s = 0;
			for (int k = 0; k < SIDE; k++)
				s += number(i, k) * number(j, k);
			s = wlb_float_of_bfloat16(wlb_bfloat16_of_float(s));
			for (int n = 0; n < SIDE; n++)
				d[(size_t)(i * SIDE + n)] += s * number(j, n);
		}
	std::vector<int> bits(d.size());
	memcpy(bits.data(), d.data(), d.size() * sizeof(float));
	return bits;
}

void expect_right(const program &run)
{
	const std::vector<std::vector<int>> results = trial_results(run);
	assert_int_equal(results.size(), 1);
	assert_true(results[0] == expected());
}

void expect_wrong(const program &run)
{
	const std::vector<int> right = expected();
	for (const std::vector<int> &result : trial_results(run))
		assert_true(result != right);
}

void expect_report(const program &run, const char *text)
{
	const trial_end end = trial_in_process(run);
	assert_false(end.well);
	if (end.text.find(text) == std::string::npos)
		fail_msg("not '%s' but: %s", text, end.text.c_str());
}

void test_right(void **)
{
	expect_right(run_product<NO_FAULT>);
	expect_right(run_product<A_IN_REGISTERS>);
}

void test_missing_waits(void **)
{
	expect_wrong(run_product<NO_WAIT_FOR_PRODUCTS>);
	expect_wrong(run_product<NO_WAIT_FOR_LAST_PRODUCTS>);
	expect_report(run_product<NO_WAIT_FOR_STAGE>, "more than 1 threads arrive in phase 0");
}

void test_stages(void **)
{
	expect_wrong(run_product<OTHER_STAGE>);
	expect_wrong(run_product<STAGE_LEFT_TOO_EARLY>);
}

void test_changed_registers(void **)
{
	expect_wrong(run_product<REGISTERS_CHANGED>);
}

void test_row_too_many(void **)
{
	expect_wrong(run_product<NO_FAULT, 1>);
}

void test_reports(void **)
{
	expect_report(run_product<NO_WAIT_FOR_TILE>, "which still lacks 32768 bytes");
	expect_report(run_product<OTHER_PARITY>, "which still lacks 32768 bytes");
	expect_report(run_product<TOO_MANY_BYTES>, "lacks 0 of 1 arrivals and 16 bytes");
	expect_report(run_product<ONE_THREAD_LESS>, "lacks 1 of 128 arrivals and 0 bytes");
	expect_report(run_product<OTHER_DESCRIPTOR>, "differs from that of thread 0");
	expect_report(run_product<COPY_LEFT_UNDER_WAY>, "the block has ended while 4 boxes are copied");
	expect_report(run_product<UNALIGNED_TILE>, "not a multiple of 1024");
}

/* Warps 1 and 2 each read what warp 0 wrote before it arrived at their named barrier. */
__global__ void named_barriers(int *out, bool faulty)
{
	static __shared__ int values[3][32];
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
	if (warp == 0) {
		for (int reader = 1; reader < 3; reader++) {
			values[reader][lane] = reader * 100 + lane;
			wlb_named_barrier_arrive<64>(reader);
		}
		return;
	}
	if (!faulty)
		wlb_named_barrier_sync<64>(warp);
	out[threadIdx.x - 32] = values[warp][31 - lane];
}

template <bool faulty> std::vector<int> run_named_barriers()
{
	int *const out = trial_memory(64);
	trial_launch(1, 96, 0, named_barriers, out, faulty);
	return trial_take(out, 64);
}

void test_named_barriers(void **)
{
	const std::vector<std::vector<int>> right = trial_results(run_named_barriers<false>);
	assert_int_equal(right.size(), 1);
	assert_int_equal(right[0][0], 131);
	assert_int_equal(right[0][63], 200);
	assert_true(trial_results(run_named_barriers<true>).size() > 1);
}

__global__ void half_a_barrier(int *)
{
	if (threadIdx.x < 64)
		wlb_named_barrier_sync<128>(3);
}

void test_named_barrier_of_too_few(void **)
{
	expect_report(
		[] {
			trial_launch(1, 128, 0, half_a_barrier, (int *)nullptr);
			return trial_take(trial_memory(1), 1);
		},
		"waits at named barrier 3, to which 64 of 128 threads have come, as all up to thread 63");
}

void test_maps_refused(void **)
{
	int *const matrix = trial_memory(64 * 32);
	wlb_tensor_map map;
	wlb_error error;
	assert_int_equal(wlb_cuda_map_matrix(&map, matrix, 64, 64, 64, &error), 0);
	assert_int_equal(wlb_cuda_map_matrix(&map, matrix + 1, 60, 64, 64, &error), -1);
	assert_int_equal(wlb_cuda_map_matrix(&map, matrix, 60, 64, 68, &error), -1);
	assert_int_equal(wlb_cuda_map_matrix(&map, matrix, 64, 32, 64, &error), -1);
	assert_int_equal(wlb_cuda_map_matrix(&map, matrix, 64, 64, 32, &error), -1);
	assert_int_equal(wlb_cuda_map_matrix(&map, matrix, 65, 64, 64, &error), -1);
	assert_non_null(strstr(error.message, "not all device memory"));
	trial_take(matrix, 1);
}

void test_capability(void **)
{
	cudaDeviceProp properties;
	assert_int_equal(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
	assert_int_equal(properties.major * 10 + properties.minor, 90);
	cuda_host_set_capability(86);
	assert_int_equal(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
	assert_int_equal(properties.major * 10 + properties.minor, 86);
	cuda_host_set_capability(0);
}
} // namespace

int main()
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_right),          cmocka_unit_test(test_missing_waits),
		cmocka_unit_test(test_stages),         cmocka_unit_test(test_changed_registers),
		cmocka_unit_test(test_row_too_many),   cmocka_unit_test(test_reports),
		cmocka_unit_test(test_named_barriers), cmocka_unit_test(test_named_barrier_of_too_few),
		cmocka_unit_test(test_maps_refused),   cmocka_unit_test(test_capability),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
