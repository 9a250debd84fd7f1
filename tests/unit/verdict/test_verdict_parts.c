/* Verdicts of loaders that are slow, and of values that are bad. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/verdict/run.h"

enum { ONSET = 40 };

static void slow_loader_9(const struct run *run, struct wlb_verdict_step *step)
{
	step->loader_s = 0.001;
	step->aside_s = 10.0; /* a checkpoint after each step */
	if (run->step >= ONSET && step->rank == 9) {
		step->loader_s = 0.3;
		step->storage_s = 0.02;
	}
}

static void slow_storage(const struct run *run, struct wlb_verdict_step *step)
{
	step->loader_s = run->step >= ONSET ? 0.3 : 0.001;
	step->storage_s = 0.9 * step->loader_s;
}

static void loaders_and_file_systems_are_told_apart(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 8, 4);
	run_expect_none(&run, ONSET, slow_loader_9);
	run_until(&run, WLB_VERDICT_SLOW_LOADER, 50, slow_loader_9);
	assert_int_equal(run.verdicts[0].ranks[0], 9);
	assert_int_equal(run.verdicts[0].rank_count, 1);
	run_steps(&run, 20, slow_loader_9);
	assert_true(run.verdicts[0].cost_percent > 15.0 && run.verdicts[0].cost_percent < 35.0);
	run_end(&run);
	run_begin(&run, 2, 1, 2, 8, 4);
	run_expect_none(&run, ONSET, slow_storage);
	run_until(&run, WLB_VERDICT_SLOW_STORAGE, 50, slow_storage);
	run_steps(&run, 10, slow_storage);
	assert_int_equal(run.count, 1);
	assert_int_equal(run.verdicts[0].rank_count, 32);
	run_end(&run);
}

static double bad_value;

static void bad_gradient_of_6(const struct run *run, struct wlb_verdict_step *step)
{
	if (run->step >= ONSET && step->rank == 6)
		step->gradient_norm = bad_value;
}

static void all_losses_diverge(const struct run *run, struct wlb_verdict_step *step)
{
	if (run->step >= ONSET)
		step->loss = NAN;
}

static void bad_values_are_named(void **state)
{
	(void)state;
	static const double values[] = {NAN, INFINITY, 1e4};
	static const int64_t after[] = {1, 1, 3};
	struct run run;
	for (int i = 0; i < 3; i++) {
		run_begin(&run, 2, 1, 2, 8, 4);
		bad_value = values[i];
		run_expect_none(&run, ONSET, bad_gradient_of_6);
		assert_int_equal(run_until(&run, WLB_VERDICT_BAD_VALUES, 10, bad_gradient_of_6), after[i]);
		assert_int_equal(run.verdicts[0].ranks[0], 6);
		assert_non_null(strstr(run.verdicts[0].evidence, "gradient norm of rank 6"));
		run_end(&run);
	}
	run_begin(&run, 2, 1, 2, 8, 4);
	run_expect_none(&run, ONSET + 20, all_losses_diverge);
	run_end(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loaders_and_file_systems_are_told_apart),
		cmocka_unit_test(bad_values_are_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
