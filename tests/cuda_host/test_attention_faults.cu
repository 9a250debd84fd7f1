/*
 * The kernels of attention once more, each time with one fault: a barrier or a wait for copies that is missing, a row
 * or a key too many or too few, a wrong stride. The comparison that test_attention.cu makes must find every one of
 * them. The functions that kernels call are replaced here, so that the kernels have no place for faults.
 */
#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/attention_check.h"
#include "tests/cuda_host/capability.h"
#include "tests/cuda_host/order.h"
#include "tests/cuda_host/trial.h"
#include "tests/gpu/attention_case.h"

#include <set>
#include <stdio.h>
#include <stdlib.h>
#include <utility>

namespace
{
/* A line of a kernel. */
typedef std::pair<const char *, int> source_line;

enum class fault {
	none,
	no_barrier,
	no_wait,
	key_too_many,
	key_too_few,
	window_too_long,
	window_too_short,
	row_too_many,
	row_too_few,
	row_missing,
	stride
};
fault planted;
source_line planted_at;                /* of no_barrier and no_wait */
std::set<source_line> barriers, waits; /* that kernels have met */
source_line met;

void at(const char *file, int line)
{
	met = {file, line};
}

void barrier()
{
	barriers.insert(met);
	if (planted != fault::no_barrier || planted_at != met)
		__syncthreads();
}

template <int newest> void wait()
{
	waits.insert(met);
	if (planted != fault::no_wait || planted_at != met)
		wlb_cp_async_wait<newest>();
}

int keys_seen(const struct wlb_segment &segment, int i)
{
	const int off_by = planted == fault::key_too_many ? 1 : planted == fault::key_too_few ? -1 : 0;
	return wlb_keys_seen(segment, i) + off_by;
}

struct wlb_seen keys_seen_from(const struct wlb_segment &segment, int window, int i, int first)
{
	const int wider_by = planted == fault::window_too_long ? 1 : planted == fault::window_too_short ? -1 : 0;
	return {wlb_keys_seen_from(segment, window, i, first).low - wider_by, keys_seen(segment, i) - first};
}

template <typename element, int dim, int rows, int threads>
void tile_copy(element *tile, const element *from, int64_t stride, int valid)
{
	wlb_tile_copy<element, dim, rows, threads>(tile, from, stride, valid - (planted == fault::row_missing));
}

template <typename element, int dim, int threads>
void tile_store(element *to, int64_t stride, const element *tile, int valid)
{
	const int off_by = planted == fault::row_too_many ? 1 : planted == fault::row_too_few ? -1 : 0;
	wlb_tile_store<element, dim, threads>(to, stride, tile, valid + off_by);
}

template <typename element, int dim> element *head_at(const struct wlb_cuda_rows &matrix, int64_t row, int head)
{
	struct wlb_cuda_rows taken = matrix;
	taken.stride -= planted == fault::stride ? dim : 0;
	return wlb_head_at<element, dim>(taken, row, head);
}
} // namespace

#define __syncthreads() (at(__FILE__, __LINE__), barrier())
#define wlb_cp_async_wait at(__FILE__, __LINE__), wait
#define wlb_keys_seen keys_seen
#define wlb_keys_seen_from keys_seen_from
#define wlb_tile_copy tile_copy
#define wlb_tile_store tile_store
#define wlb_head_at head_at
#include "kernels/cuda/attention_backward.cu"
#include "kernels/cuda/attention_forward.cu"

namespace
{
const struct cuda_host_orders ORDERS[] = {
	{CUDA_HOST_ASCENDING, 0, 0}, {CUDA_HOST_DESCENDING, 0, 0}, {CUDA_HOST_RANDOM, 1, 0}};

/* A short document, and one of a tile and some rows. */
const struct wlb_segment SEGMENTS[] = {{0, 20, 0, 20, 0}, {20, 140, 20, 140, 0}};
const struct attention_case SMALL = {"small", SEGMENTS, 2, 161, 161, ATTENTION_QKV, 2, 1, 0, 0};
const struct attention_case IN_WINDOW = {"small, in a window", SEGMENTS, 2, 161, 161, ATTENTION_QKV, 2, 1, 33, 0};

struct wlb_device *open_device()
{
	struct wlb_error error;
	cuda_host_set_orders(&ORDERS[0]);
	struct wlb_device *const device = wlb_device_open_cuda(0, WLB_FLOAT32, WLB_FLOAT32, &error);
	if (device == NULL)
		abort();
	return device;
}

/* Ends the process, which is one of a trial, where a result is wrong or depends on the order. */
void check(const struct attention_case *of, int is_bf16, int head_dim)
{
	struct attention_run runs[3];
	struct wlb_error error;
	struct wlb_device *const device = open_device();
	for (int i = 0; i < 3; i++) {
		cuda_host_set_orders(&ORDERS[i]);
		if (attention_case_run(&runs[i], device, of, is_bf16, head_dim, &error) != 0)
			abort();
		if (!attention_case_same(&runs[0], &runs[i]) || (i == 0 && !(attention_case_error(&runs[0]) <= 1))) {
			fprintf(stderr, "head_dim %d is wrong\n", head_dim);
			abort();
		}
	}
	for (struct attention_run &run : runs)
		attention_case_free(&run);
	wlb_device_close(device);
}

/* Where head_dim is 256 two warps share rows, which needs a barrier that the others do not. */
std::vector<int> check_all()
{
	check(&IN_WINDOW, 1, 64);
	check(&SMALL, 1, 64);
	check(&SMALL, 1, 256);
	return {};
}

bool is_found(fault what, const source_line &where = {})
{
	planted = what;
	planted_at = where;
	const cuda_host::trial_end end = cuda_host::trial_in_process(check_all);
	const bool found = !end.well && !end.text.empty(); /* and not only slow */
	planted = fault::none;
	if (!found)
		print_error("fault %d at %s:%d is not found\n", (int)what, where.first == nullptr ? "all" : where.first,
		            where.second);
	return found;
}

void test_no_fault(void **)
{
	assert_true(cuda_host::trial_in_process(check_all).well);
	check(&SMALL, 0, 64); /* here, so that `barriers` and `waits` are known */
}

void test_missing_barriers(void **)
{
	assert_true(barriers.size() >= 6);
	int found = 0;
	for (const source_line &where : barriers)
		found += is_found(fault::no_barrier, where);
	assert_int_equal(found, barriers.size());
}

void test_missing_waits(void **)
{
	assert_true(waits.size() >= 4);
	int found = 0;
	for (const source_line &where : waits)
		found += is_found(fault::no_wait, where);
	assert_int_equal(found, waits.size());
}

void test_bounds(void **)
{
	assert_true(is_found(fault::key_too_many));
	assert_true(is_found(fault::key_too_few));
	assert_true(is_found(fault::window_too_long));
	assert_true(is_found(fault::window_too_short));
	assert_true(is_found(fault::row_too_many));
	assert_true(is_found(fault::row_too_few));
	assert_true(is_found(fault::row_missing));
}

void test_stride(void **)
{
	assert_true(is_found(fault::stride));
}
} // namespace

int main()
{
	cuda_host_set_capability(80); /* of Hopper's kernels it has none */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_fault),      cmocka_unit_test(test_missing_barriers),
		cmocka_unit_test(test_missing_waits), cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_stride),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
