/* The ring of ended steps: what a reader finds while it is written, after it has been away, and in any memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>
#include <pthread.h>

#include "common/rank_trace.h"

/* All of its numbers follow from that of the step. */
static struct wlb_trace_step step_of(int64_t number)
{
	double n = (double)number;
	struct wlb_trace_step step = {.step = number,
	                              .seconds = n,
	                              .aside_s = 2.0 * n,
	                              .computed_s = 3.0 * n,
	                              .work = 4.0 * n,
	                              .loader_s = 5.0 * n,
	                              .storage_s = 6.0 * n,
	                              .has_loss = number % 2 == 0,
	                              .loss = 7.0 * n,
	                              .has_gradient_norm = number % 3 == 0,
	                              .gradient_norm = 8.0 * n,
	                              .transfer_count = (int)(number % (WLB_TRACE_TRANSFERS + 1))};
	for (int i = 0; i < step.transfer_count; i++)
		step.transfers[i] = (struct wlb_trace_transfer){
			.group = i, .calls = (uint64_t)number + 1, .bytes = (uint64_t)number * 9, .blocked_s = n + i};
	return step;
}

static void assert_is_step(const struct wlb_trace_step *found, int64_t number)
{
	const struct wlb_trace_step step = step_of(number);
	assert_int_equal(found->step, step.step);
	assert_true(found->seconds == step.seconds && found->aside_s == step.aside_s);
	assert_true(found->computed_s == step.computed_s && found->work == step.work);
	assert_true(found->loader_s == step.loader_s && found->storage_s == step.storage_s);
	assert_true(found->loss == step.loss && found->gradient_norm == step.gradient_norm);
	assert_int_equal(found->has_loss, step.has_loss);
	assert_int_equal(found->has_gradient_norm, step.has_gradient_norm);
	assert_int_equal(found->transfer_count, step.transfer_count);
	for (int i = 0; i < step.transfer_count; i++) {
		assert_int_equal(found->transfers[i].group, step.transfers[i].group);
		assert_int_equal(found->transfers[i].calls, step.transfers[i].calls);
		assert_int_equal(found->transfers[i].bytes, step.transfers[i].bytes);
		assert_true(found->transfers[i].blocked_s == step.transfers[i].blocked_s);
	}
}

static void add(struct wlb_step_ring *ring, int64_t first, int64_t last)
{
	for (int64_t number = first; number <= last; number++) {
		struct wlb_trace_step step = step_of(number);
		wlb_step_ring_add(ring, &step);
	}
}

static struct wlb_step_ring *new_ring(void)
{
	struct wlb_step_ring *ring = calloc(1, sizeof(*ring));
	assert_non_null(ring);
	return ring;
}

static void steps_are_read_once_and_in_order(void **state)
{
	(void)state;
	struct wlb_step_ring *ring = new_ring();
	struct wlb_trace_step steps[8];
	uint64_t next = 0;
	assert_int_equal(wlb_step_ring_read(ring, &next, steps, 8), 0);
	add(ring, 1, 5);
	assert_int_equal(wlb_step_ring_read(ring, &next, steps, 3), 3);
	for (int i = 0; i < 3; i++)
		assert_is_step(&steps[i], 1 + i);
	assert_int_equal(wlb_step_ring_read(ring, &next, steps, 8), 2);
	assert_is_step(&steps[1], 5);
	assert_int_equal(wlb_step_ring_read(ring, &next, steps, 8), 0);
	assert_int_equal(next, 5);
	free(ring);
}

static void a_reader_that_was_away_finds_the_newest(void **state)
{
	(void)state;
	enum { LOST = 7 };
	struct wlb_step_ring *ring = new_ring();
	struct wlb_trace_step steps[WLB_TRACE_STEPS + 1];
	uint64_t next = 0;
	add(ring, 1, WLB_TRACE_STEPS + LOST);
	assert_int_equal(wlb_step_ring_read(ring, &next, steps, WLB_TRACE_STEPS + 1), WLB_TRACE_STEPS);
	assert_int_equal(next, WLB_TRACE_STEPS + LOST);
	for (int i = 0; i < WLB_TRACE_STEPS; i++)
		assert_is_step(&steps[i], LOST + 1 + i);
	free(ring);
}

/* Another process of the same rank has taken the area. */
static void a_new_rank_is_read_from_its_first_step(void **state)
{
	(void)state;
	struct wlb_step_ring *ring = new_ring();
	struct wlb_trace_step steps[8];
	uint64_t next = 40;
	add(ring, 1, 2);
	assert_int_equal(wlb_step_ring_read(ring, &next, steps, 8), 2);
	assert_is_step(&steps[0], 1);
	assert_int_equal(next, 2);
	free(ring);
}

static void numbers_that_are_not_finite_are_kept(void **state)
{
	(void)state;
	struct wlb_step_ring *ring = new_ring();
	struct wlb_trace_step step = {.has_loss = 1, .loss = NAN, .has_gradient_norm = 1, .gradient_norm = INFINITY};
	uint64_t next = 0;
	wlb_step_ring_add(ring, &step);
	assert_int_equal(wlb_step_ring_read(ring, &next, &step, 1), 1);
	assert_true(step.has_loss && isnan(step.loss) && step.has_gradient_norm && isinf(step.gradient_norm));
	free(ring);
}

static void *write_steps(void *ring)
{
	add(ring, 1, 400000);
	return NULL;
}

static void a_reader_finds_whole_steps(void **state)
{
	(void)state;
	struct wlb_step_ring *ring = new_ring();
	pthread_t writer;
	uint64_t next = 0, found = 0;
	int64_t last = 0;
	assert_int_equal(pthread_create(&writer, NULL, write_steps, ring), 0);
	while (last < 400000) {
		struct wlb_trace_step steps[16];
		size_t count = wlb_step_ring_read(ring, &next, steps, 16);
		for (size_t i = 0; i < count; i++) {
			assert_true(steps[i].step > last);
			last = steps[i].step;
			assert_is_step(&steps[i], last);
		}
		found += count;
	}
	pthread_join(writer, NULL);
	assert_true(found >= WLB_TRACE_STEPS && found <= 400000);
	free(ring);
}

static void reading_any_memory_ends(void **state)
{
	(void)state;
	struct wlb_step_ring *ring = new_ring();
	for (unsigned seed = 0; seed < 64; seed++) {
		struct wlb_trace_step steps[16];
		uint64_t next = seed % 3 == 0 ? 0 : UINT64_MAX - seed;
		unsigned random = seed;
		for (size_t i = 0; i < sizeof(*ring); i++)
			((unsigned char *)ring)[i] = seed == 0 ? 0xff : (unsigned char)(rand_r(&random) >> (seed % 7));
		/* Some slots have the version that a reader looks for. */
		uint64_t end = atomic_load(&ring->next);
		for (uint64_t i = 1; i <= 8 && end > i; i++)
			atomic_store(&ring->slots[(end - i) % WLB_TRACE_STEPS].version, end - i + 1);
		for (int i = 0; i < 20; i++) {
			size_t count = wlb_step_ring_read(ring, &next, steps, 16);
			assert_in_range(count, 0, 16);
			for (size_t s = 0; s < count; s++)
				assert_in_range(steps[s].transfer_count, 0, WLB_TRACE_TRANSFERS);
		}
	}
	free(ring);
}

static void a_cleared_area_has_no_steps(void **state)
{
	(void)state;
	struct wlb_rank_trace *trace = calloc(1, wlb_rank_trace_bytes());
	struct wlb_trace_step step = step_of(12);
	uint64_t next = 0;
	assert_non_null(trace);
	wlb_rank_trace_add_step(trace, &step);
	assert_int_equal(wlb_rank_trace_read_steps(trace, &next, &step, 1), 1);
	assert_is_step(&step, 12);
	wlb_rank_trace_clear(trace);
	next = 0;
	assert_int_equal(wlb_rank_trace_read_steps(trace, &next, &step, 1), 0);
	free(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_are_read_once_and_in_order),
		cmocka_unit_test(a_reader_that_was_away_finds_the_newest),
		cmocka_unit_test(a_new_rank_is_read_from_its_first_step),
		cmocka_unit_test(numbers_that_are_not_finite_are_kept),
		cmocka_unit_test(a_reader_finds_whole_steps),
		cmocka_unit_test(reading_any_memory_ends),
		cmocka_unit_test(a_cleared_area_has_no_steps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
