/* Faults with the instructions of kernels/cuda/ptx.cuh; tests/gpu/check_ptx.cu checks their results. */
#include "tests/cuda_host/trial.h"
#include "tests/gpu/ptx_product.cuh"

using namespace cuda_host;

namespace
{
const int DEPTH = 2 * PTX_SIDE; /* each tile is copied to once */

/* Two bfloat16 an int: small whole numbers. */
std::vector<int> operand()
{
	std::vector<int> values(PTX_SIDE * DEPTH / 2);
	for (size_t i = 0; i < values.size(); i++)
		values[i] = i % 3 == 0 ? 0x3f804000 : 0x40403f80;
	return values;
}

template <int fault> std::vector<int> product()
{
	int *a = trial_memory(PTX_SIDE * DEPTH / 2, operand()), *b = trial_memory(PTX_SIDE * DEPTH / 2, operand());
	int *d = trial_memory(PTX_SIDE * PTX_SIDE);
	trial_launch(1, 32, 0, ptx_product<fault>, (float *)d, (const uint16_t *)a, (const uint16_t *)b, DEPTH, 0);
	trial_take(a, 1);
	trial_take(b, 1);
	return trial_take(d, PTX_SIDE * PTX_SIDE);
}

template <int fault> void expect_wrong()
{
	const std::vector<std::vector<int>> right = trial_results(product<PTX_NO_FAULT>);
	assert_int_equal(right.size(), 1);
	for (const std::vector<int> &result : trial_results(product<fault>))
		assert_true(result != right[0]);
}

void test_missing_wait(void **)
{
	expect_wrong<PTX_NO_WAIT>();
}

void test_wait_for_too_few_groups(void **)
{
	expect_wrong<PTX_WAIT_FOR_TOO_FEW>();
}

void test_copy_onto_a_tile_in_use(void **)
{
	const trial_end end = trial_in_process(product<PTX_ONE_TILE>);
	assert_false(end.well);
	assert_true(end.text.find("an earlier copy is under way") != std::string::npos);
}

void test_unaligned_copy(void **)
{
	const trial_end end = trial_in_process(product<PTX_UNALIGNED>);
	assert_false(end.well);
	assert_true(end.text.find("not 16-byte aligned") != std::string::npos);
	assert_true(end.text.find("in kernel ptx_product") != std::string::npos);
}

/* Each lane copies 16 bytes and reads those of the next lane. */
template <bool faulty> __global__ void copy_from_neighbour(int *out, const int *in)
{
	static __shared__ int4 values[32];
	wlb_cp_async(&values[threadIdx.x], in + 4 * threadIdx.x, threadIdx.x != 7);
	wlb_cp_async_commit();
	wlb_cp_async_wait<0>();
	if (!faulty)
		__syncwarp();
	out[threadIdx.x] = values[(threadIdx.x + 1) % 32].z;
}

template <bool faulty> std::vector<int> neighbours()
{
	std::vector<int> values(4 * 32);
	for (size_t i = 0; i < values.size(); i++)
		values[i] = (int)i;
	int *in = trial_memory(values.size(), values), *out = trial_memory(32);
	trial_launch(1, 32, 0, copy_from_neighbour<faulty>, out, in);
	const std::vector<int> result = trial_take(out, 32);
	trial_take(in, 1);
	return result;
}

void test_missing_barrier_after_the_wait(void **)
{
	const std::vector<std::vector<int>> right = trial_results(neighbours<false>);
	assert_int_equal(right.size(), 1);
	assert_int_equal(right[0][0], 4 + 2);
	assert_int_equal(right[0][6], 0); /* lane 7 copied zeros */
	assert_true(trial_results(neighbours<true>).size() > 1);
}

/* Half a warp calls what needs a whole one. */
__global__ void half_a_warp(float *d)
{
	const uint32_t a[4] = {};
	float sums[4] = {};
	if (threadIdx.x < 16)
		wlb_mma_bf16(sums, a, 0, 0);
	d[threadIdx.x] = sums[0];
}

void test_product_by_half_a_warp(void **)
{
	const trial_end end = trial_in_process([] {
		int *d = trial_memory(32);
		trial_launch(1, 32, 0, half_a_warp, (float *)d);
		return trial_take(d, 32);
	});
	assert_false(end.well);
	assert_true(end.text.find("waits at mma.sync") != std::string::npos);
}
} // namespace

int main()
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_missing_wait),
		cmocka_unit_test(test_wait_for_too_few_groups),
		cmocka_unit_test(test_copy_onto_a_tile_in_use),
		cmocka_unit_test(test_unaligned_copy),
		cmocka_unit_test(test_missing_barrier_after_the_wait),
		cmocka_unit_test(test_product_by_half_a_warp),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
