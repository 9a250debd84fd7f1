/* Opening devices, their memory and their errors. */
#include "kernels/bfloat16.h"
#include "tests/unit/kernels/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The address sanitizer would end the program where the system's allocator gives NULL. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static void test_dtype(void **state)
{
	(void)state;
	assert_int_equal(wlb_dtype_bytes(WLB_FLOAT32), 4);
	assert_int_equal(wlb_dtype_bytes(WLB_FLOAT64), 8);
	assert_int_equal(wlb_dtype_bytes(WLB_BFLOAT16), 2);
	assert_string_equal(wlb_dtype_name(WLB_FLOAT32), "float32");
	assert_string_equal(wlb_dtype_name(WLB_FLOAT64), "float64");
	assert_string_equal(wlb_dtype_name(WLB_BFLOAT16), "bfloat16");
	const enum wlb_dtype no_type = (enum wlb_dtype)99;
	struct wlb_error refusal = {0};
	assert_int_equal(wlb_dtype_bytes(no_type), 0);
	assert_string_equal(wlb_dtype_name(no_type), "unknown");
	assert_int_equal(wlb_dtype_check(WLB_FLOAT32, &refusal), 0);
	assert_int_equal(wlb_dtype_check(WLB_FLOAT64, &refusal), 0);
	assert_int_equal(wlb_dtype_check(no_type, &refusal), -1);
	assert_string_equal(refusal.message, "element type 99: it must be float32 (0), float64 (1) or bfloat16 (2)");
}

/* bfloat16 has 8 significant bits: between 1 and 2 its values are 2^-7 apart. */
static void test_bfloat16_is_rounded_once(void **state)
{
	(void)state;
	const double ulp = 0x1p-7;
	const struct {
		double value;
		uint16_t bits;
	} cases[] = {
		{0.0, 0x0000},
		{-0.0, 0x8000},
		{1.0, 0x3f80},
		{-1.0, 0xbf80},
		{1.0 + 0.5 * ulp, 0x3f80}, /* a tie goes to the even one */
		{1.0 + 1.5 * ulp, 0x3f82},
		{1.0 + 0.5 * ulp + 0x1p-40, 0x3f81}, /* as a float it would be the tie */
		{1.0 + 0.5 * ulp - 0x1p-40, 0x3f80},
		{1.0 + 1.5 * ulp - 0x1p-40, 0x3f81},
		{-(1.0 + 0.5 * ulp + 0x1p-40), 0xbf81},
		{3.3e38, 0x7f78},
		{1e300, 0x7f80}, /* infinity */
		{-INFINITY, 0xff80},
		{0x1p-133, 0x0001}, /* the smallest */
		{0x1p-135, 0x0000},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint16_t stored = 0xaaaa;
		wlb_dtype_store(WLB_BFLOAT16, &stored, 0, cases[i].value);
		assert_int_equal(stored, cases[i].bits);
	}
	uint16_t nan = 0;
	wlb_dtype_store(WLB_BFLOAT16, &nan, 0, NAN);
	assert_true((nan & 0x7f80) == 0x7f80 && (nan & 0x7f) != 0);
}

/* Of every upper half, with lower halves at which rounding changes. */
static void test_halves_of_masters(void **state)
{
	(void)state;
	static const uint32_t lower[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
	for (uint32_t upper = 0; upper <= 0xffff; upper++)
		for (size_t i = 0; i < sizeof(lower) / sizeof(lower[0]); i++) {
			const uint32_t bits = upper << 16 | lower[i];
			float master, joined;
			memcpy(&master, &bits, sizeof(master));
			const struct wlb_halves halves = wlb_split_master(master);
			const float weight = wlb_float_of_bfloat16(halves.weight);
			joined = wlb_join_master(halves);
			if (isnan(master)) {
				assert_true(isnan(joined) && isnan(weight));
				continue;
			}
			assert_memory_equal(&joined, &master, sizeof(master));
			/* Ties, whose lower half is 0x8000, are rounded away from 0. */
			if (lower[i] != 0x8000)
				assert_int_equal(halves.weight, wlb_bfloat16_of_float(master));
			else
				assert_int_equal(halves.weight, upper + 1);
		}
}

static void test_open(void **state)
{
	(void)state;
	struct wlb_error error;
	struct wlb_device *device = wlb_device_open_cpu(WLB_FLOAT32, 0, &error);
	assert_non_null(device);
	assert_string_equal(device->name, "cpu");
	assert_int_equal(device->compute, WLB_FLOAT32);
	assert_int_equal(device->host_memory, 1);
	wlb_device_close(device);
	wlb_device_close(NULL);
}

static void test_open_refused(void **state)
{
	(void)state;
	struct wlb_error error;
	assert_null(wlb_device_open_cpu(WLB_FLOAT32, -3, &error));
	assert_non_null(strstr(error.message, "-3 threads"));
	assert_null(wlb_device_open_cpu(7, 1, &error));
	assert_non_null(strstr(error.message, "element type 7"));
}

/* A machine may or may not have the GPU, but none has number 4096. */
static void test_open_cuda_refused(void **state)
{
	(void)state;
	struct wlb_error error;
	assert_null(wlb_device_open_cuda(4096, WLB_FLOAT32, WLB_FLOAT32, &error));
	assert_non_null(strstr(error.message, "cuda:4096"));
}

static void test_memory(void **state)
{
	(void)state;
	struct wlb_device *device = open_double(1);
	const struct wlb_ops *ops = device->ops;
	char *a = ops->alloc(device, 100, NULL), *b = ops->alloc(device, 100, NULL), host[100];
	void *nothing = ops->alloc(device, 0, NULL);
	assert_true((uintptr_t)a % 64 == 0 && (uintptr_t)b % 64 == 0);
	assert_non_null(nothing);
	memset(host, 7, sizeof(host));
	ops->to_host(device, host, a, sizeof(host));
	for (size_t i = 0; i < sizeof(host); i++)
		assert_int_equal(host[i], 0);
	ops->to_device(device, NULL, a, "four", 5);
	ops->copy(device, b, a, 5);
	ops->to_host(device, host, b, 5);
	assert_string_equal(host, "four");
	ops->zero(device, b, 2);
	assert_int_equal(b[1], 0);
	assert_int_equal(b[2], 'u');
	ops->release(device, NULL);
	RELEASE(device, a, b, nothing);
	wlb_device_close(device);
}

static void test_queues_and_events(void **state)
{
	(void)state;
	struct wlb_device *device = open_double(1);
	const struct wlb_ops *ops = device->ops;
	struct wlb_error error = {0};
	struct wlb_queue *queue = ops->queue_new(device, 1, &error);
	struct wlb_event *from = ops->event_new(device, 1, &error), *to = ops->event_new(device, 1, &error);
	char *pinned = ops->alloc_host(device, 100, &error), *a = ops->alloc(device, 100, &error);
	assert_true(queue != NULL && from != NULL && to != NULL && pinned != NULL && a != NULL);
	assert_true((uintptr_t)pinned % 64 == 0);
	assert_int_equal(ops->event_done(device, from), 1);
	ops->event_record(device, from, NULL);
	ops->queue_wait(device, queue, from);
	ops->to_device(device, queue, a, "five", 5);
	nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
	ops->to_host_start(device, queue, pinned, a, 5);
	ops->event_record(device, to, queue);
	assert_int_equal(ops->event_wait(device, to, &error), 0);
	assert_string_equal(pinned, "five");
	assert_int_equal(ops->event_done(device, to), 1);
	assert_true(ops->event_elapsed_s(device, from, to) >= 0.002);
	ops->event_free(device, from);
	ops->event_free(device, to);
	ops->event_free(device, NULL);
	ops->queue_free(device, queue);
	ops->queue_free(device, NULL);
	ops->release_host(device, pinned);
	ops->release_host(device, NULL);
	RELEASE(device, a);
	wlb_device_close(device);
}

/* Waits of the host are counted; calls that only queue work are not. */
static void test_host_waits(void **state)
{
	(void)state;
	struct wlb_device *device = open_double(1);
	const struct wlb_ops *ops = device->ops;
	struct wlb_error error = {0};
	struct wlb_event *event = ops->event_new(device, 0, &error);
	double x[2] = {1, 2}, y[2] = {0};
	int64_t before = device->host_waits;
	ops->event_record(device, event, NULL);
	ops->queue_wait(device, NULL, event);
	ops->to_device(device, NULL, x, y, sizeof(y));
	ops->to_host_start(device, NULL, y, x, sizeof(y));
	ops->event_done(device, event);
	assert_int_equal(device->host_waits, before);
	assert_int_equal(ops->event_wait(device, event, &error), 0);
	assert_int_equal(device->host_waits, before + 1);
	assert_int_equal(ops->synchronize(device, &error), 0);
	ops->to_host(device, y, x, sizeof(y));
	assert_int_equal(device->host_waits, before + 3);
	ops->event_free(device, event);
	wlb_device_close(device);
}

static size_t count_of(const char *memory, size_t bytes, char value)
{
	size_t count = 0;
	for (size_t i = 0; i < bytes; i++)
		count += memory[i] == value;
	return count;
}

/* Large enough for several threads, and for what goes past the caches; begin and end stand inside cache lines. */
static void test_large_memory(void **state)
{
	(void)state;
	static const size_t sizes[] = {70, 4097, (1 << 20) + 4097, (33 << 20) + 4097};
	struct wlb_device *device = open_double(3);
	const struct wlb_ops *ops = device->ops;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t bytes = sizes[i], inner = bytes - 13 - 7;
		char *a = ops->alloc(device, bytes, NULL), *b = ops->alloc(device, bytes, NULL);
		assert_true((uintptr_t)a % 64 == 0);
		assert_int_equal(count_of(a, bytes, 0), bytes);
		memset(a, 7, bytes);
		ops->copy(device, b + 13, a + 5, inner);
		assert_true(b[12] == 0 && b[13 + inner] == 0);
		assert_int_equal(count_of(b, bytes, 7), inner);
		ops->zero(device, a + 13, inner);
		assert_true(a[12] == 7 && a[13 + inner] == 7);
		assert_int_equal(count_of(a, bytes, 0), inner);
		RELEASE(device, a, b);
	}
	wlb_device_close(device);
}

/* Time goes on while the device computes, and stands nearly still while the thread sleeps. */
static void test_busy(void **state)
{
	(void)state;
	struct wlb_device *device = open_double(1);
	double *x = random_numbers(1 << 15, 1), *y = random_numbers(1 << 15, 2);
	double start = device->ops->busy_s(device);
	while (device->ops->busy_s(device) < start + 0.01)
		device->ops->add(device, y, x, 1 << 15);
	start = device->ops->busy_s(device);
	nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
	assert_true(device->ops->busy_s(device) < start + 0.05);
	free(x), free(y);
	wlb_device_close(device);
}

static void test_out_of_memory(void **state)
{
	(void)state;
	struct wlb_device *device = open_double(1);
	struct wlb_error error;
	assert_null(device->ops->alloc(device, SIZE_MAX - 100, &error));
	assert_non_null(strstr(error.message, "out of memory"));
	assert_null(device->ops->alloc(device, SIZE_MAX - 1, &error));
	assert_int_equal(device->ops->synchronize(device, &error), 0);
	wlb_device_close(device);
}

/* An operation that finds no scratch memory does nothing, and the first error waits for synchronize(). */
static void test_first_error(void **state)
{
	(void)state;
	struct wlb_device *device = open_double(1);
	struct wlb_error error;
	double x[2] = {1, 2};
	device->ops->rmsnorm_backward(device, x, x, x, x, x, 0, x, 1, INT64_C(1) << 55);
	device->ops->linear_d_w(device, x, x, 1, x, 1, 1, INT64_C(1) << 31, 1, 1);
	assert_int_equal(device->ops->synchronize(device, &error), -1);
	assert_non_null(strstr(error.message, "scratch memory"));
	assert_int_equal(device->ops->synchronize(device, &error), 0);
	assert_true(x[0] == 1 && x[1] == 2);
	wlb_device_close(device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dtype),
		cmocka_unit_test(test_bfloat16_is_rounded_once),
		cmocka_unit_test(test_halves_of_masters),
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_open_refused),
		cmocka_unit_test(test_open_cuda_refused),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_queues_and_events),
		cmocka_unit_test(test_host_waits),
		cmocka_unit_test(test_out_of_memory),
		cmocka_unit_test(test_first_error),
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_large_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
