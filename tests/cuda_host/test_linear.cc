/* Matrix products: what is kept between them, what is refused, and faults that must be found. That they are right is
 * checked by tests/gpu/check_linear.c. */
#include "kernels/cuda/linear.h"
#include "tests/cuda_host/cublas.h"
#include "tests/cuda_host/trial.h"

#include <cublasLt.h>

/* Of <sanitizer/allocator_interface.h>, which GCC does not install. */
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void *, size_t),
                                                         void (*free_hook)(const volatile void *));

using namespace cuda_host;

namespace
{
typedef struct wlb_cuda_linear_size size;

struct wlb_device *device;
struct wlb_cuda_linear *linear;

int open_device(void **)
{
	struct wlb_error error;
	device = wlb_device_open_cuda(0, WLB_FLOAT32, WLB_FLOAT32, &error);
	if (device != nullptr)
		linear = wlb_cuda_linear_open(device, wlb_cuda_of(device)->stream, &error);
	return linear == nullptr;
}

int close_device(void **)
{
	wlb_cuda_linear_close(linear);
	wlb_device_close(device);
	return 0;
}

std::vector<int> floats(size_t count)
{
	std::vector<int> bits(count);
	for (size_t i = 0; i < count; i++) {
		const float number = (float)(i % 7) - 3;
		memcpy(&bits[i], &number, sizeof(number));
	}
	return bits;
}

struct wlb_cuda_matrix matrix(void *values, int64_t stride, enum wlb_dtype type = WLB_FLOAT32)
{
	return {values, type, stride};
}

/* y[n, 4] = x[n, 8] W[4, 8]^T */
void queue_product(int *y, int *x, int *w, int64_t n)
{
	const size s = {n, 8, 4};
	const struct wlb_cuda_matrix of_y = matrix(y, 4), of_x = matrix(x, 8);
	const struct wlb_cuda_weight weight = {w, WLB_FLOAT32, 8};
	wlb_cuda_linear_forward(linear, &of_y, &of_x, &weight, NULL, &s);
}

void expect_no_error()
{
	struct wlb_error error = {""};
	if (device->ops->synchronize(device, &error) != 0)
		fail_msg("%s", error.message);
}

void expect_error(const std::vector<std::string> &parts)
{
	struct wlb_error error = {""};
	assert_int_equal(device->ops->synchronize(device, &error), -1);
	for (const std::string &part : parts)
		if (strstr(error.message, part.c_str()) == NULL)
			fail_msg("no '%s' in: %s", part.c_str(), error.message);
	assert_int_equal(device->ops->synchronize(device, &error), 0);
}

/* -- what is kept -- */

uint64_t allocations; /* outside the library */

void count_allocation(const volatile void *, size_t)
{
	allocations += !cublas_runs();
}

void nothing(const volatile void *)
{
}

void test_a_known_product_allocates_nothing_and_asks_nothing(void **)
{
	const int64_t rows[] = {1, 17, 64};
	int *x = trial_memory(64 * 8, floats(64 * 8)), *w = trial_memory(4 * 8, floats(32)), *y = trial_memory(64 * 4);
	for (const int64_t n : rows)
		queue_product(y, x, w, n);
	const uint64_t choices = cublas_choices();
	assert_true(__sanitizer_install_malloc_and_free_hooks(count_allocation, nothing) > 0);
	allocations = 0;
	for (int step = 0; step < 3; step++)
		for (const int64_t n : rows)
			queue_product(y, x, w, n);
	assert_int_equal(allocations, 0);
	assert_int_equal(cublas_choices(), choices);
	queue_product(y, x, w, 33); /* a new one asks, and allocates nothing either */
	assert_int_equal(allocations, 0);
	assert_int_equal(cublas_choices(), choices + 1);
	int *one = new int; /* the hook does count */
	delete one;
	assert_true(allocations > 0);
	expect_no_error();
	trial_take(x, 1);
	trial_take(w, 1);
	trial_take(y, 1);
}

/* More products than there are plans: the oldest are made again, and are right. */
void test_plans_are_bounded(void **)
{
	const int64_t most = 3000;
	int *x = trial_memory((size_t)most * 8, floats((size_t)most * 8)), *w = trial_memory(32, floats(32));
	int *y = trial_memory((size_t)most * 4);
	queue_product(y, x, w, most);
	const std::vector<int> want = trial_take(y, (size_t)most * 4);
	y = trial_memory((size_t)most * 4);
	const uint64_t before = cublas_choices();
	for (int64_t n = 100; n <= most; n++)
		queue_product(y, x, w, n);
	const uint64_t after = cublas_choices();
	assert_true(after - before >= (uint64_t)most - 101);
	for (int64_t n = 100; n <= most; n++)
		queue_product(y, x, w, n);
	assert_true(cublas_choices() - after >= (uint64_t)most - 101 - 1024);
	expect_no_error();
	assert_true(trial_take(y, (size_t)most * 4) == want);
	trial_take(x, 1);
	trial_take(w, 1);
}

/* -- what is refused -- */

void test_operands_that_are_refused(void **)
{
	int *memory = trial_memory(1024);
	const size s = {3, 8, 4}, negative = {-1, 8, 4}, none = {0, 8, 4};
	const struct wlb_cuda_weight weight = {memory, WLB_FLOAT32, 8}, half = {memory, WLB_BFLOAT16, 8};
	struct wlb_cuda_matrix y = matrix(memory + 512, 4), x = matrix(memory + 256, 8);
	const struct wlb_cuda_matrix narrow = matrix(memory + 256, 7), other = matrix(memory + 768, 4, WLB_BFLOAT16);
	const struct wlb_cuda_matrix wide = matrix(memory + 256, 8, WLB_FLOAT64);
	const struct wlb_cuda_matrix rounded = matrix(memory + 768, 8, WLB_BFLOAT16);
	const struct wlb_cuda_matrix odd = matrix((char *)memory + 2, 8);
	wlb_cuda_linear_forward(linear, &y, &narrow, &weight, NULL, &s);
	expect_error({"cuda:0", "linear_forward of 3 rows, 8 in, 4 out", "float32", "row stride is less"});
	wlb_cuda_linear_forward(linear, &y, &x, &half, NULL, &s);
	expect_error({"bfloat16 and float32 to float32", "one element type"});
	wlb_cuda_linear_forward(linear, &y, &x, &weight, &other, &s);
	expect_error({"what is added"});
	wlb_cuda_linear_d_x(linear, &wide, &y, &weight, 0, &s);
	expect_error({"linear_d_x", "neither float32 nor bfloat16"});
	wlb_cuda_linear_d_w(linear, &rounded, &y, &x, 1, &s);
	expect_error({"linear_d_w", "the element type of the factors"});
	wlb_cuda_linear_d_x(linear, &odd, &y, &weight, 0, &s);
	expect_error({"not a multiple of the element's size"});
	wlb_cuda_linear_forward(linear, &y, &x, &weight, NULL, &negative);
	expect_error({"-1 rows", "negative"});
	wlb_cuda_linear_forward(linear, &y, &x, &weight, NULL, &none);
	expect_no_error();
	trial_take(memory, 1);
}

/* An algorithm is used for the product that it was chosen for, with its workspace and alignment. */
void test_an_algorithm_for_another_product_is_refused(void **)
{
	cublasLtMatmulDescOpaque_t operation;
	cublasLtMatrixLayoutOpaque_t square, other, narrow;
	cublasLtMatmulPreferenceOpaque_t preference;
	cublasLtMatmulHeuristicResult_t result;
	const uint64_t bytes = 1 << 20;
	const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
	int count;
	const float one = 1, zero = 0;
	cublasLtMatmulDescInit_internal(&operation, sizeof(operation), CUBLAS_COMPUTE_32F, CUDA_R_32F);
	cublasLtMatrixLayoutInit_internal(&square, sizeof(square), CUDA_R_32F, 4, 4, 4);
	cublasLtMatrixLayoutInit_internal(&other, sizeof(other), CUDA_R_32F, 4, 4, 5);
	cublasLtMatrixLayoutInit_internal(&narrow, sizeof(narrow), CUDA_R_32F, 4, 4, 3);
	cublasLtMatmulPreferenceInit_internal(&preference, sizeof(preference));
	cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, 8);
	cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions, 4);
	const auto choose = [&](cublasLtMatrixLayoutOpaque_t *a) {
		return cublasLtMatmulAlgoGetHeuristic(NULL, &operation, a, &square, &square, &square, &preference, 1,
		                                      &result, &count);
	};
	assert_int_equal(choose(&narrow), CUBLAS_STATUS_INVALID_VALUE);
	assert_int_equal(choose(&square), CUBLAS_STATUS_SUCCESS);
	int *memory = trial_memory(256), *workspace = trial_memory(4096);
	const auto multiply = [&](cublasLtMatrixLayoutOpaque_t *a, int *at, size_t workspace_bytes) {
		return cublasLtMatmul(NULL, &operation, &one, at, a, memory + 64, &square, &zero, memory + 128, &square,
		                      memory + 128, &square, &result.algo, workspace, workspace_bytes, trial_stream());
	};
	assert_int_equal(multiply(&square, memory, 4096), CUBLAS_STATUS_SUCCESS);
	assert_int_equal(multiply(&other, memory, 4096), CUBLAS_STATUS_INVALID_VALUE);
	assert_int_equal(multiply(&square, memory, 64), CUBLAS_STATUS_INVALID_VALUE);
	assert_int_equal(multiply(&square, memory + 1, 4096), CUBLAS_STATUS_NOT_SUPPORTED);
	trial_take(memory, 1);
	trial_take(workspace, 1);
}

/* -- faults -- */

/* x is copied on another stream than that of the product. */
template <bool faulty> std::vector<int> with_event()
{
	void *pinned;
	cudaHostAlloc(&pinned, 16 * 8 * sizeof(int), cudaHostAllocDefault);
	memcpy(pinned, floats(16 * 8).data(), 16 * 8 * sizeof(int));
	int *x = trial_memory(16 * 8, std::vector<int>(16 * 8)), *w = trial_memory(32, floats(32));
	int *y = trial_memory(16 * 4);
	cudaEvent_t copied;
	cudaEventCreateWithFlags(&copied, cudaEventDisableTiming);
	cudaDeviceSynchronize();
	cudaMemcpyAsync(x, pinned, 16 * 8 * sizeof(int), cudaMemcpyHostToDevice, trial_stream(1));
	cudaEventRecord(copied, trial_stream(1));
	if (!faulty)
		cudaStreamWaitEvent(wlb_cuda_of(device)->stream, copied, 0);
	queue_product(y, x, w, 16);
	const std::vector<int> result = trial_take(y, 16 * 4);
	trial_take(x, 1);
	trial_take(w, 1);
	cudaFreeHost(pinned);
	cudaEventDestroy(copied);
	return result;
}

void test_missing_event_before_a_product(void **)
{
	assert_int_equal(trial_results(with_event<false>).size(), 1);
	assert_true(trial_results(with_event<true>).size() > 1);
}

/* The report has `text` where the fault is there, and there is none without it. */
void expect_report(void (*product)(int *memory, bool faulty), const char *text)
{
	const auto run = [product](bool faulty) {
		return [product, faulty] {
			int *memory = trial_memory(256, std::vector<int>(256));
			product(memory, faulty);
			expect_no_error();
			return trial_take(memory, 256);
		};
	};
	const trial_end good = trial_in_process(run(false)), bad = trial_in_process(run(true));
	assert_true(good.well);
	assert_false(bad.well);
	if (bad.text.find(text) == std::string::npos)
		fail_msg("no '%s' in: %s", text, bad.text.c_str());
}

/* d_w[4, 8], the last 32 of 256 numbers, with the stride of a wider matrix. */
void with_wrong_stride(int *memory, bool faulty)
{
	const size s = {3, 8, 4};
	const struct wlb_cuda_matrix d_w = matrix(memory + 224, faulty ? 9 : 8), d_y = matrix(memory, 4);
	const struct wlb_cuda_matrix x = matrix(memory + 64, 8);
	wlb_cuda_linear_d_w(linear, &d_w, &d_y, &x, 1, &s);
}

void test_wrong_stride(void **)
{
	expect_report(with_wrong_stride, "cublasLtMatmul: D, 4 columns of 8 with stride 9");
}

void with_overlap(int *memory, bool faulty)
{
	const size s = {4, 8, 4};
	const struct wlb_cuda_matrix y = matrix(memory + (faulty ? 20 : 32), 4), x = matrix(memory, 8);
	const struct wlb_cuda_weight weight = {memory + 64, WLB_FLOAT32, 8};
	wlb_cuda_linear_forward(linear, &y, &x, &weight, NULL, &s);
}

void test_result_over_a_factor(void **)
{
	expect_report(with_overlap, "D overlaps a factor");
}

void with_residual(int *memory, bool faulty)
{
	const size s = {4, 8, 4};
	const struct wlb_cuda_matrix y = matrix(memory + 128, 4), x = matrix(memory, 8);
	const struct wlb_cuda_matrix residual = matrix(memory + (faulty ? 132 : 128), 4);
	const struct wlb_cuda_weight weight = {memory + 64, WLB_FLOAT32, 8};
	wlb_cuda_linear_forward(linear, &y, &x, &weight, &residual, &s);
}

void test_result_over_part_of_the_residual(void **)
{
	expect_report(with_residual, "D overlaps C");
}

void with_host_pointer(int *memory, bool faulty)
{
	static int on_host[64];
	const size s = {4, 8, 4};
	const struct wlb_cuda_matrix y = matrix(memory + 128, 4), x = matrix(faulty ? on_host : memory, 8);
	const struct wlb_cuda_weight weight = {memory + 64, WLB_FLOAT32, 8};
	wlb_cuda_linear_forward(linear, &y, &x, &weight, NULL, &s);
}

void test_factor_in_host_memory(void **)
{
	expect_report(with_host_pointer, "B, 4 columns of 8");
}
} // namespace

int main()
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_known_product_allocates_nothing_and_asks_nothing),
		cmocka_unit_test(test_plans_are_bounded),
		cmocka_unit_test(test_operands_that_are_refused),
		cmocka_unit_test(test_an_algorithm_for_another_product_is_refused),
		cmocka_unit_test(test_missing_event_before_a_product),
		cmocka_unit_test(test_wrong_stride),
		cmocka_unit_test(test_result_over_a_factor),
		cmocka_unit_test(test_result_over_part_of_the_residual),
		cmocka_unit_test(test_factor_in_host_memory),
	};
	return cmocka_run_group_tests(tests, open_device, close_device);
}
