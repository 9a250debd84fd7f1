/* Which steps are reported: how many a second, and that the stride does not change from step to step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "worker/train/step_times.h"

/* Steps of this length, until the stride stays. */
static void run(struct wlb_step_stride *stride, double step_s, int steps)
{
	for (int i = 0; i < steps; i++)
		wlb_step_stride_note(stride, step_s);
}

static void long_steps_are_all_told(void **state)
{
	(void)state;
	struct wlb_step_stride stride;
	wlb_step_stride_init(&stride, 8, 8);
	run(&stride, 0.5, 100);
	assert_int_equal(stride.chosen, 1);
	for (int64_t step = 1; step < 10; step++)
		assert_true(wlb_step_stride_has(&stride, step));
}

static void short_steps_are_told_some_times_a_second(void **state)
{
	(void)state;
	for (double step_s = 1e-4; step_s < 0.1; step_s *= 1.3) {
		struct wlb_step_stride stride;
		wlb_step_stride_init(&stride, 8, 8);
		run(&stride, step_s, 100);
		double told_every_s = (double)stride.chosen * step_s;
		assert_true(told_every_s >= 0.17 && told_every_s <= 0.51);
		assert_int_equal(stride.chosen & (stride.chosen - 1), 0);
	}
}

static void many_ranks_tell_fewer_steps(void **state)
{
	(void)state;
	struct wlb_step_stride of_node, of_run;
	wlb_step_stride_init(&of_node, 256, 128);
	wlb_step_stride_init(&of_run, 16384, 8);
	run(&of_node, 0.01, 200);
	run(&of_run, 0.01, 200);
	/* A node's report takes 256 of all its ranks. */
	assert_true(128.0 / ((double)of_node.chosen * 0.01) <= 256.0);
	assert_true(16384.0 / ((double)of_run.chosen * 0.01) <= 1.42 * 4096.0);
}

static void the_stride_stays_where_steps_vary(void **state)
{
	(void)state;
	struct wlb_step_stride stride;
	unsigned random = 1;
	wlb_step_stride_init(&stride, 8, 8);
	run(&stride, 0.03, 100);
	int64_t before = stride.chosen;
	for (int i = 0; i < 10000; i++) {
		run(&stride, 0.03 * (0.8 + 0.4 * rand_r(&random) / RAND_MAX), 1);
		assert_int_equal(stride.chosen, before);
	}
	run(&stride, 2.0, 200);
	assert_int_equal(stride.chosen, 1);
}

static void all_ranks_tell_multiples_of_what_they_agreed_on(void **state)
{
	(void)state;
	struct wlb_step_stride stride;
	wlb_step_stride_init(&stride, 8, 8);
	run(&stride, 0.001, 100); /* this rank's choice alone changes nothing */
	assert_true(wlb_step_stride_has(&stride, 3));
	stride.agreed = 4;
	assert_true(wlb_step_stride_has(&stride, 8) && !wlb_step_stride_has(&stride, 10));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(long_steps_are_all_told),
		cmocka_unit_test(short_steps_are_told_some_times_a_second),
		cmocka_unit_test(many_ranks_tell_fewer_steps),
		cmocka_unit_test(the_stride_stays_where_steps_vary),
		cmocka_unit_test(all_ranks_tell_multiples_of_what_they_agreed_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
