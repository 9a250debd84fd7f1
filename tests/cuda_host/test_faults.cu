/*
 * Kernels and programs with one fault each, beside the same without it: with the fault they must be found, by results
 * that depend on the order, by a wrong result, or by a report that says where; without it they must pass.
 */
#include "kernels/cuda/launch.cuh"
#include "tests/cuda_host/trial.h"

using namespace cuda_host;

namespace
{
const int THREADS = 96;

std::vector<int> numbers(int count)
{
	std::vector<int> values((size_t)count);
	for (int i = 0; i < count; i++)
		values[(size_t)i] = 7 * i + 3;
	return values;
}

/* Takes numbers(count) through a kernel(out, in) with `out_count` results. */
program through(void (*kernel)(int *, const int *), dim3 blocks, int count, size_t shared_bytes = 0)
{
	return [=] {
		int *in = trial_memory((size_t)count, numbers(count)), *out = trial_memory((size_t)count);
		assert_int_equal(trial_launch(blocks, THREADS, shared_bytes, kernel, out, in), cudaSuccess);
		const std::vector<int> result = trial_take(out, (size_t)count);
		trial_take(in, (size_t)count);
		return result;
	};
}

void expect_race(const program &faulty, const program &right)
{
	assert_int_equal(trial_results(right).size(), 1);
	assert_true(trial_results(faulty).size() > 1);
}

/* The report has every one of `parts`. */
void expect_report(const program &faulty, const program &right, const std::vector<std::string> &parts)
{
	const trial_end good = trial_in_process(right), bad = trial_in_process(faulty);
	if (!good.well)
		print_error("%s", good.text.c_str());
	assert_true(good.well);
	assert_false(bad.well);
	for (const std::string &part : parts) {
		if (bad.text.find(part) == std::string::npos)
			print_error("no '%s' in: %s", part.c_str(), bad.text.c_str());
		assert_true(bad.text.find(part) != std::string::npos);
	}
}

/* -- barriers -- */

template <bool faulty> __global__ void reverse_block(int *out, const int *in)
{
	static __shared__ int values[THREADS];
	values[threadIdx.x] = in[threadIdx.x];
	if (!faulty)
		__syncthreads();
	out[threadIdx.x] = values[THREADS - 1 - threadIdx.x];
}

void test_missing_syncthreads(void **)
{
	expect_race(through(reverse_block<true>, 1, THREADS), through(reverse_block<false>, 1, THREADS));
}

/* The barrier before the second use of an array is missing: a thread overwrites what another has yet to read. */
template <bool faulty> __global__ void rotate_twice(int *out, const int *in)
{
	static __shared__ int values[THREADS];
	int value = in[threadIdx.x];
	for (int turn = 0; turn < 2; turn++) {
		values[threadIdx.x] = value;
		__syncthreads();
		value = values[(threadIdx.x + 1) % THREADS];
		if (!faulty)
			__syncthreads();
	}
	out[threadIdx.x] = value;
}

void test_missing_syncthreads_before_reuse(void **)
{
	expect_race(through(rotate_twice<true>, 1, THREADS), through(rotate_twice<false>, 1, THREADS));
}

template <bool faulty> __global__ void reverse_warp(int *out, const int *in)
{
	static __shared__ int values[THREADS];
	const unsigned lane = threadIdx.x % 32, warp = threadIdx.x - lane;
	values[threadIdx.x] = in[threadIdx.x];
	if (!faulty)
		__syncwarp();
	out[threadIdx.x] = values[warp + 31 - lane];
}

void test_missing_syncwarp(void **)
{
	expect_race(through(reverse_warp<true>, 1, THREADS), through(reverse_warp<false>, 1, THREADS));
}

/* A barrier of a warp where one of the block is needed. */
template <bool faulty> __global__ void reverse_over_warps(int *out, const int *in)
{
	static __shared__ int values[THREADS];
	values[threadIdx.x] = in[threadIdx.x];
	if (faulty)
		__syncwarp();
	else
		__syncthreads();
	out[threadIdx.x] = values[(threadIdx.x + 32) % THREADS];
}

void test_syncwarp_for_syncthreads(void **)
{
	expect_race(through(reverse_over_warps<true>, 1, THREADS), through(reverse_over_warps<false>, 1, THREADS));
}

template <bool faulty> __global__ void sum_lanes(int *out, const int *in)
{
	int value = in[threadIdx.x];
	if (!faulty || threadIdx.x != 37)
		value += __shfl_xor_sync(0xffffffffu, value, 1);
	out[threadIdx.x] = value;
}

void test_lane_that_does_not_arrive(void **)
{
	expect_report(through(sum_lanes<true>, 1, THREADS), through(sum_lanes<false>, 1, THREADS),
	              {"thread 32 of the block (lane 0) waits at a shuffle with mask 0xffffffff",
	               "thread 37 of the block (lane 5) has left the kernel", "in kernel", "sum_lanes",
	               "block (0,0,0), thread (32,0,0)"});
}

template <bool faulty> __global__ void leave_early(int *out, const int *in)
{
	if (faulty && threadIdx.x == 95)
		return;
	__syncthreads();
	out[threadIdx.x] = in[threadIdx.x];
}

void test_thread_that_leaves_before_a_barrier(void **)
{
	expect_report(through(leave_early<true>, 1, THREADS), through(leave_early<false>, 1, THREADS),
	              {"thread 0 of the block (lane 0) waits at __syncthreads",
	               "thread 95 of the block (lane 31) has left the kernel", "leave_early"});
}

/* -- blocks -- */

template <bool faulty> __global__ void add_before(int *out, const int *in)
{
	const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	out[i] = in[i];
	if (faulty && blockIdx.x > 0)
		out[i] += out[i - blockDim.x];
}

void test_block_that_reads_what_another_writes(void **)
{
	expect_race(through(add_before<true>, 3, 3 * THREADS), through(add_before<false>, 3, 3 * THREADS));
}

/* -- bounds -- */

const int WIDTH = 16;

/* Copies rows of WIDTH: with the fault, each begins where the last element of the one before it belongs. */
template <bool faulty> __global__ void copy_rows(int *out, const int *in)
{
	const unsigned row = threadIdx.x / WIDTH, column = threadIdx.x % WIDTH;
	out[row * (faulty ? WIDTH - 1 : WIDTH) + column] = in[threadIdx.x];
}

void test_wrong_stride(void **)
{
	expect_race(through(copy_rows<true>, 1, THREADS), through(copy_rows<false>, 1, THREADS));
	assert_true(through(copy_rows<false>, 1, THREADS)() == numbers(THREADS));
	assert_false(through(copy_rows<true>, 1, THREADS)() == numbers(THREADS));
}

/* A stride that is too large leaves the memory, on reading. */
template <bool faulty> __global__ void read_rows(int *out, const int *in)
{
	const unsigned row = threadIdx.x / WIDTH, column = threadIdx.x % WIDTH;
	out[threadIdx.x] = in[row * (faulty ? WIDTH + 1 : WIDTH) + column];
}

void test_wrong_stride_that_leaves_the_memory(void **)
{
	expect_report(through(read_rows<true>, 1, THREADS), through(read_rows<false>, 1, THREADS),
	              {"heap-buffer-overflow", "READ of size 4", "in kernel", "read_rows", "thread (91,0,0)"});
}

template <bool faulty> __global__ void copy_elements(int *out, const int *in)
{
	const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x), n = 130;
	if (faulty ? i <= n : i < n)
		out[i] = in[min(i, n - 1)];
}

void test_off_by_one_in_device_memory(void **)
{
	expect_report(through(copy_elements<true>, 2, 130), through(copy_elements<false>, 2, 130),
	              {"heap-buffer-overflow", "WRITE of size 4", "copy_elements", "block (1,0,0), thread (34,0,0)"});
}

template <bool faulty> __global__ void shift_static(int *out, const int *in)
{
	static __shared__ int values[THREADS];
	int *const first = values;
	first[faulty ? threadIdx.x + 1 : threadIdx.x] = in[threadIdx.x];
	__syncthreads();
	out[threadIdx.x] = values[THREADS - 1 - threadIdx.x];
}

void test_off_by_one_in_static_shared_memory(void **)
{
	expect_report(through(shift_static<true>, 1, THREADS), through(shift_static<false>, 1, THREADS),
	              {"global-buffer-overflow", "'values'", "shift_static", "block (0,0,0), thread (95,0,0)"});
}

template <bool faulty> __global__ void shift_dynamic(int *out, const int *in)
{
	int *const values = (int *)wlb_dynamic_shared;
	values[faulty ? threadIdx.x + 1 : threadIdx.x] = in[threadIdx.x];
	__syncthreads();
	out[threadIdx.x] = values[THREADS - 1 - threadIdx.x];
}

void test_off_by_one_in_dynamic_shared_memory(void **)
{
	const size_t bytes = THREADS * sizeof(int);
	expect_report(through(shift_dynamic<true>, 1, THREADS, bytes), through(shift_dynamic<false>, 1, THREADS, bytes),
	              {"use-after-poison", "WRITE of size 4", "shift_dynamic", "thread (95,0,0)"});
}

template <bool faulty> __global__ void sum_of_shared(int *out, const int *in)
{
	static __shared__ int sum;
	if (!faulty && threadIdx.x == 0)
		sum = 0;
	__syncthreads();
	if (threadIdx.x == 5)
		sum += in[blockIdx.x];
	__syncthreads();
	out[blockIdx.x] = sum;
}

/* A block finds what the one before it left, or all ones. */
void test_shared_memory_that_is_not_set(void **)
{
	expect_race(through(sum_of_shared<true>, 4, 4), through(sum_of_shared<false>, 4, 4));
}

template <bool faulty> __global__ void read_vector(int *out, const int *in)
{
	if (threadIdx.x == 0)
		out[0] = ((const int4 *)(in + (faulty ? 1 : 4)))->y;
}

void test_misaligned_vector(void **)
{
	expect_report(through(read_vector<true>, 1, 16), through(read_vector<false>, 1, 16),
	              {"misaligned address", "read_vector"});
}

/* -- what the host passes -- */

template <bool faulty> std::vector<int> pass_pointer()
{
	int *memory = trial_memory(THREADS, numbers(THREADS));
	int on_host[THREADS] = {};
	trial_launch(1, THREADS, 0, copy_rows<false>, memory, faulty ? on_host : memory);
	return trial_take(memory, THREADS);
}

void test_host_pointer_to_a_kernel(void **)
{
	expect_report(pass_pointer<true>, pass_pointer<false>,
	              {"copy_rows", "argument 1", "neither device memory nor pinned host memory"});
}

__global__ void set(int *out, int value)
{
	out[threadIdx.x] = value;
}

__global__ void copy(int *out, const int *in)
{
	out[threadIdx.x] = in[threadIdx.x];
}

/* One stream computes, another copies the result. */
template <bool faulty> std::vector<int> on_two_streams()
{
	int *from = trial_memory(THREADS), *to = trial_memory(THREADS);
	cudaEvent_t computed;
	cudaEventCreateWithFlags(&computed, cudaEventDisableTiming);
	const cudaLaunchConfig_t compute = {1, THREADS, 0, trial_stream(0)}, copies = {1, THREADS, 0, trial_stream(1)};
	cudaLaunchKernelEx(&compute, set, from, 5);
	cudaEventRecord(computed, trial_stream(0));
	if (!faulty)
		cudaStreamWaitEvent(trial_stream(1), computed, 0);
	cudaLaunchKernelEx(&copies, copy, to, from);
	cudaStreamSynchronize(trial_stream(1));
	cudaEventDestroy(computed);
	const std::vector<int> result = trial_take(to, THREADS);
	trial_take(from, THREADS);
	return result;
}

void test_missing_event(void **)
{
	expect_race(on_two_streams<true>, on_two_streams<false>);
}

/* The event is there, but was recorded before what it has to wait for. */
template <bool faulty> std::vector<int> with_early_record()
{
	int *memory = trial_memory(THREADS);
	cudaEvent_t computed;
	cudaEventCreateWithFlags(&computed, cudaEventDisableTiming);
	cudaEventRecord(computed, trial_stream(0));
	trial_launch(1, THREADS, 0, set, memory, 5);
	if (!faulty)
		cudaEventRecord(computed, trial_stream(0));
	cudaEventSynchronize(computed);
	const cudaLaunchConfig_t other = {1, THREADS, 0, trial_stream(1)};
	cudaLaunchKernelEx(&other, set, memory, 6);
	cudaEventDestroy(computed);
	return trial_take(memory, THREADS);
}

void test_event_recorded_too_early(void **)
{
	expect_race(with_early_record<true>, with_early_record<false>);
}

/* A pinned buffer is filled for the next copy. */
template <bool faulty> std::vector<int> reuse_buffer()
{
	int *first = trial_memory(THREADS), *second = trial_memory(THREADS);
	void *pinned;
	cudaHostAlloc(&pinned, THREADS * sizeof(int), cudaHostAllocDefault);
	cudaEvent_t copied;
	cudaEventCreateWithFlags(&copied, cudaEventDisableTiming);
	memset(pinned, 1, THREADS * sizeof(int));
	cudaMemcpyAsync(first, pinned, THREADS * sizeof(int), cudaMemcpyHostToDevice, trial_stream());
	cudaEventRecord(copied, trial_stream());
	if (!faulty)
		cudaEventSynchronize(copied);
	memset(pinned, 2, THREADS * sizeof(int));
	cudaMemcpyAsync(second, pinned, THREADS * sizeof(int), cudaMemcpyHostToDevice, trial_stream());
	const std::vector<int> result = trial_take(first, THREADS);
	trial_take(second, THREADS);
	cudaFreeHost(pinned);
	cudaEventDestroy(copied);
	return result;
}

void test_host_buffer_used_before_its_copy_ended(void **)
{
	expect_race(reuse_buffer<true>, reuse_buffer<false>);
}

/* The host reads a pinned buffer to which the device copies. */
template <bool faulty> std::vector<int> read_buffer()
{
	int *memory = trial_memory(THREADS, numbers(THREADS));
	void *pinned;
	cudaHostAlloc(&pinned, THREADS * sizeof(int), cudaHostAllocDefault);
	cudaMemcpyAsync(pinned, memory, THREADS * sizeof(int), cudaMemcpyDeviceToHost, trial_stream());
	if (!faulty)
		cudaStreamSynchronize(trial_stream());
	const int *first = static_cast<int *>(pinned);
	const std::vector<int> result(first, first + THREADS);
	trial_take(memory, THREADS);
	cudaFreeHost(pinned);
	return result;
}

void test_host_buffer_read_before_its_copy_ended(void **)
{
	expect_race(read_buffer<true>, read_buffer<false>);
}
} // namespace

int main()
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_missing_syncthreads),
		cmocka_unit_test(test_missing_syncthreads_before_reuse),
		cmocka_unit_test(test_missing_syncwarp),
		cmocka_unit_test(test_syncwarp_for_syncthreads),
		cmocka_unit_test(test_lane_that_does_not_arrive),
		cmocka_unit_test(test_thread_that_leaves_before_a_barrier),
		cmocka_unit_test(test_block_that_reads_what_another_writes),
		cmocka_unit_test(test_wrong_stride),
		cmocka_unit_test(test_wrong_stride_that_leaves_the_memory),
		cmocka_unit_test(test_off_by_one_in_device_memory),
		cmocka_unit_test(test_off_by_one_in_static_shared_memory),
		cmocka_unit_test(test_off_by_one_in_dynamic_shared_memory),
		cmocka_unit_test(test_shared_memory_that_is_not_set),
		cmocka_unit_test(test_misaligned_vector),
		cmocka_unit_test(test_host_pointer_to_a_kernel),
		cmocka_unit_test(test_missing_event),
		cmocka_unit_test(test_event_recorded_too_early),
		cmocka_unit_test(test_host_buffer_used_before_its_copy_ended),
		cmocka_unit_test(test_host_buffer_read_before_its_copy_ended),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
