/* The runtime API and the intrinsics, where they do what CUDA does. */
#include "tests/cuda_host/order.h"
#include "tests/cuda_host/trial.h"

using namespace cuda_host;

namespace
{
__global__ void nothing()
{
}

void test_launches_that_cuda_refuses(void **)
{
	const dim3 one(1);
	assert_int_equal(trial_launch(one, one, 0, nothing), cudaSuccess);
	assert_int_equal(trial_launch(0, one, 0, nothing), cudaErrorInvalidConfiguration);
	assert_int_equal(trial_launch(dim3(1, 65536), one, 0, nothing), cudaErrorInvalidConfiguration);
	assert_int_equal(trial_launch(one, 0, 0, nothing), cudaErrorInvalidConfiguration);
	assert_int_equal(trial_launch(one, 1025, 0, nothing), cudaErrorInvalidConfiguration);
	assert_int_equal(trial_launch(one, dim3(16, 16, 8), 0, nothing), cudaErrorInvalidConfiguration);
	assert_int_equal(trial_launch(one, dim3(1, 1, 65), 0, nothing), cudaErrorInvalidConfiguration);
	assert_int_equal(cudaGetLastError(), cudaErrorInvalidConfiguration);
	assert_int_equal(cudaGetLastError(), cudaSuccess);
}

void test_dynamic_shared_memory_that_is_asked_for(void **)
{
	assert_int_equal(trial_launch(1, 1, 48 * 1024, nothing), cudaSuccess);
	assert_int_equal(trial_launch(1, 1, 48 * 1024 + 1, nothing), cudaErrorInvalidValue);
	assert_int_equal(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 228 * 1024),
	                 cudaErrorInvalidValue);
	assert_int_equal(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 * 1024),
	                 cudaSuccess);
	assert_int_equal(trial_launch(1, 1, 227 * 1024, nothing), cudaSuccess);
	cudaGetLastError();
}

void test_memory_that_is_refused(void **)
{
	void *memory = &memory;
	int on_host = 0;
	assert_int_equal(cudaMalloc(&memory, (size_t)1 << 60), cudaErrorMemoryAllocation);
	assert_null(memory);
	assert_int_equal(cudaFree(&on_host), cudaErrorInvalidValue);
	assert_int_equal(cudaFree(NULL), cudaSuccess);
	int *device = trial_memory(4);
	const size_t bytes = 4 * sizeof(int);
	assert_int_equal(cudaMemsetAsync(device, 0, bytes + 1, trial_stream()), cudaErrorInvalidValue);
	assert_int_equal(cudaMemcpyAsync(&on_host, device, 4, cudaMemcpyHostToDevice, trial_stream()),
	                 cudaErrorInvalidValue);
	assert_int_equal(cudaStreamSynchronize((cudaStream_t)&on_host), cudaErrorInvalidResourceHandle);
	cudaGetLastError();
	trial_take(device, 4);
}

/* With late queues: pageable memory may be used again at once, and an event is reached after what is before it. */
void test_late_queues(void **)
{
	const struct cuda_host_orders late = {CUDA_HOST_ASCENDING, 0, 1}, immediate = {CUDA_HOST_ASCENDING, 0, 0};
	cuda_host_set_orders(&late);
	int host[2] = {5, 6};
	int *device = trial_memory(2);
	cudaEvent_t copied;
	cudaEventCreateWithFlags(&copied, cudaEventDisableTiming);
	assert_int_equal(cudaEventQuery(copied), cudaSuccess); /* it was never recorded */
	cudaMemcpyAsync(device, host, sizeof(host), cudaMemcpyHostToDevice, trial_stream());
	cudaEventRecord(copied, trial_stream());
	host[0] = host[1] = 0;
	assert_int_equal(cudaEventQuery(copied), cudaErrorNotReady);
	assert_int_equal(cudaEventSynchronize(copied), cudaSuccess);
	assert_int_equal(cudaEventQuery(copied), cudaSuccess);
	cudaMemcpyAsync(host, device, sizeof(host), cudaMemcpyDeviceToHost, trial_stream());
	assert_int_equal(host[0], 5);
	assert_int_equal(host[1], 6);
	cudaEventDestroy(copied);
	trial_take(device, 2);
	cuda_host_set_orders(&immediate);
}

/* out has 8 ints a thread. */
__global__ void intrinsics(int *out)
{
	const int i = (int)threadIdx.x, lane = i % warpSize;
	const unsigned mask = i < warpSize ? 0xffffffffu : 0xffu; /* the last warp has 8 lanes */
	int *mine = out + 8 * i;
	mine[0] = __shfl_sync(mask, 10 * i, 3);
	mine[1] = __shfl_xor_sync(mask, i, 1);
	mine[2] = __shfl_up_sync(mask, i, 2);
	mine[3] = lane < 6   ? __shfl_down_sync(mask & 0xff, i, lane < 5 ? 2 : 0)
	          : lane < 8 ? __shfl_down_sync(mask & 0xff, i, 0)
	                     : -1;
	mine[4] = (int)__ballot_sync(mask, i % 2);
	mine[5] = __any_sync(mask, i == 33) + 2 * __all_sync(mask, i >= 32);
	mine[6] = (int)(__shfl_sync(mask, (double)i + 0.5, 0) * 2);
	mine[7] = min(i, 7) + max(i, 7);
}

void test_shuffles_and_votes(void **)
{
	const std::vector<std::vector<int>> results = trial_results([] {
		int *out = trial_memory(8 * 40);
		trial_launch(1, 40, 0, intrinsics, out);
		return trial_take(out, 8 * 40);
	});
	assert_int_equal(results.size(), 1);
	for (int i = 0; i < 40; i++) {
		const int *mine = &results[0][(size_t)(8 * i)];
		const int lane = i % 32, first = i - lane;
		assert_int_equal(mine[0], 10 * (first + 3));
		assert_int_equal(mine[1], i ^ 1);
		assert_int_equal(mine[2], lane < 2 ? i : i - 2);
		assert_int_equal(mine[3], lane < 5 ? i + 2 : lane < 8 ? i : -1);
		assert_int_equal(mine[4], first == 0 ? (int)0xaaaaaaaau : 0xaa);
		assert_int_equal(mine[5], first == 0 ? 0 : 3);
		assert_int_equal(mine[6], 2 * first + 1);
		assert_int_equal(mine[7], i + 7);
	}
}

/* Every thread of a grid of three dimensions writes its own number once. */
__global__ void number_threads(int *out)
{
	const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
	const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
	const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
	out[block * threads + thread] = (int)(block * threads + thread);
}

void test_indices_of_three_dimensions(void **)
{
	const size_t count = 2 * 3 * 4 * 5 * 6 * 7;
	const std::vector<std::vector<int>> results = trial_results([] {
		int *out = trial_memory(count);
		trial_launch(dim3(2, 3, 4), dim3(5, 6, 7), 0, number_threads, out);
		return trial_take(out, count);
	});
	assert_int_equal(results.size(), 1);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(results[0][i], i);
}
} // namespace

int main()
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_launches_that_cuda_refuses),
		cmocka_unit_test(test_dynamic_shared_memory_that_is_asked_for),
		cmocka_unit_test(test_memory_that_is_refused),
		cmocka_unit_test(test_late_queues),
		cmocka_unit_test(test_shuffles_and_votes),
		cmocka_unit_test(test_indices_of_three_dimensions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
