/* The sequential test: sets of peers that are small, and the noise that it measures. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "libverdict/shift.h"
#include "tests/unit/verdict/run.h"

enum { ONSET = 40 };

static double stage_slower(const struct run *run, int32_t rank)
{
	return 1.0 + 0.2 * run->world->peers_of[rank];
}

/* Stages that have layers of their own; rank 2 is slow, from ONSET on or from the start. */
static void slow_later(const struct run *run, struct wlb_verdict_step *step)
{
	step->computed_s *= stage_slower(run, step->rank) * (step->rank == 2 && run->step >= ONSET ? 1.15 : 1.0);
}

static void slow_from_the_start(const struct run *run, struct wlb_verdict_step *step)
{
	step->computed_s *= stage_slower(run, step->rank) * (step->rank == 2 ? 1.15 : 1.0);
}

/* Eight stages of one rank, and four of two. */
static void a_stage_of_one_or_two_is_compared_with_its_own_first_steps(void **state)
{
	(void)state;
	for (int dp = 1; dp <= 2; dp++) {
		struct run run;
		run_begin(&run, 1, 1, 8 / dp, dp, 4);
		run_expect_none(&run, ONSET, slow_later);
		assert_in_range(run_until(&run, WLB_VERDICT_SLOW_COMPUTE, 50, slow_later), 4, 30);
		assert_int_equal(run.verdicts[0].rank_count, 1);
		assert_int_equal(run.verdicts[0].ranks[0], 2);
		/* It does not become the norm of its stage. */
		run_steps(&run, 300, slow_later);
		assert_int_equal(run_expect_one(&run, WLB_VERDICT_SLOW_COMPUTE, WLB_VERDICT_CONFIRMED)->ranks[0], 2);
		run_end(&run);
	}
	/* The only rank of its stage: that it is slow from the start cannot be distinguished from more layers. */
	struct run run;
	run_begin(&run, 1, 1, 8, 1, 4);
	run_expect_none(&run, 200, slow_from_the_start);
	run_end(&run);
}

/* The second stage, whose layers take half as long, reports from ONSET on. */
static void second_stage_later(const struct run *run, struct wlb_verdict_step *step)
{
	int32_t stage = run->world->peers_of[step->rank];
	step->computed_s *= stage == 1 ? 0.5 : 1.0;
	if (stage == 1 && run->step < ONSET)
		step->rank = -1;
}

/* It says nothing of the first stage, and is tested when its own constant is known. */
static void second_stage_later_and_rank_2_slow_in_it(const struct run *run, struct wlb_verdict_step *step)
{
	int slow = step->rank == 2 && run->step >= ONSET + 2;
	second_stage_later(run, step);
	step->computed_s *= slow ? 1.5 : 1.0;
}

static void a_stage_that_reports_late_does_not_make_the_others_slow(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 1, 1, 2, 8, 8);
	run_expect_none(&run, ONSET + 100, second_stage_later);
	run_end(&run);
	/* Stages are numbered alternately: rank 2 is of the first, rank 3 of the second. */
	run_begin(&run, 1, 1, 2, 8, 8);
	run_expect_none(&run, ONSET + 2, second_stage_later);
	run_until(&run, WLB_VERDICT_SLOW_COMPUTE, 30, second_stage_later_and_rank_2_slow_in_it);
	assert_int_equal(run.verdicts[0].ranks[0], 2);
	run_end(&run);
}

/* One set reports from the start on, one later. While the constant of the second is learnt from single steps, its
 * entities are not tested: in its first the values were a tenth. */
static void a_set_is_not_tested_in_its_own_first_steps(void **state)
{
	(void)state;
	enum { COUNT = 16, LEARN = 16 };
	static const struct verdict_shift_limits limits = {1, 0.01, 0.1, 0.005, 0.01, 10000.0};
	static const int32_t set_of[COUNT] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
	struct run random = {0};
	struct verdict_shift shift;
	assert_int_equal(verdict_shift_init(&shift, &limits, COUNT, set_of, 2), 0);
	for (int64_t step = 0; step < ONSET + LEARN; step++) {
		double values[COUNT];
		for (int32_t i = 0; i < COUNT; i++) {
			values[i] = 0.02 * (run_random(&random) - 0.5) - (set_of[i] && step == ONSET ? 2.3 : 0.0);
			values[i] = set_of[i] && step < ONSET ? NAN : values[i];
		}
		verdict_shift_step(&shift, values, step);
		assert_int_equal(shift.slow_count, 0);
		for (int32_t i = COUNT / 2; i < COUNT; i++)
			assert_float_equal(shift.sum[i], 0.0, 0.0);
	}
	verdict_shift_free(&shift);
}

/* Half of the entities become slow: what they take longer is not noise, which would hide them. */
static void slow_ones_are_not_counted_in_the_noise(void **state)
{
	(void)state;
	enum { COUNT = 16, STEPS = 400 };
	static const struct verdict_shift_limits limits = {1, 0.01, 0.1, 0.005, 0.01, 10000.0};
	static const int32_t one_set[COUNT];
	static const double sigma = 0.02;
	struct run random = {0};
	struct verdict_shift shift;
	double values[COUNT], before = 0.0;
	assert_int_equal(verdict_shift_init(&shift, &limits, COUNT, one_set, 1), 0);
	for (int64_t step = 0; step < STEPS; step++) {
		for (int32_t i = 0; i < COUNT; i++)
			/* Uniform, of the same standard deviation. */
			values[i] = sigma * sqrt(12.0) * (run_random(&random) - 0.5) +
			            (step >= STEPS / 2 && i < COUNT / 2 ? 0.3 : 0.0);
		assert_int_equal(verdict_shift_step(&shift, values, step), 1);
		if (step == STEPS / 2 - 1)
			before = shift.noise;
	}
	assert_int_equal(shift.slow_count, COUNT / 2);
	assert_float_equal(before, sigma, 0.4 * sigma);
	assert_float_equal(shift.noise, before, 0.3 * before);
	/* How much longer they take is found against the others, which what all have in common is not. */
	double mean = 0.0;
	for (int32_t i = 0; i < COUNT / 2; i++)
		mean += shift.mean[i] / (COUNT / 2);
	assert_float_equal(mean, 0.3, 0.2 * sigma);
	for (int32_t i = 0; i < COUNT; i++)
		values[i] = NAN;
	assert_int_equal(verdict_shift_step(&shift, values, STEPS), 0);
	verdict_shift_free(&shift);
}

/* Of two entities, in noise as great as the shift that is looked for, one takes twice as long. */
static void a_great_shift_is_found_soon_behind_great_noise(void **state)
{
	(void)state;
	enum { COUNT = 2, STEPS = 60, SOON = 14, TRIALS = 20 };
	static const struct verdict_shift_limits limits = {1, 0.01, 0.1, 0.005, 0.01, 10000.0};
	static const int32_t one_set[COUNT];
	static const double sigma = 0.1;
	struct run random = {0};
	for (int trial = 0; trial < TRIALS; trial++) {
		struct verdict_shift shift;
		assert_int_equal(verdict_shift_init(&shift, &limits, COUNT, one_set, 1), 0);
		for (int64_t step = 0; step < STEPS + SOON; step++) {
			double values[COUNT];
			for (int32_t i = 0; i < COUNT; i++)
				values[i] = sigma * sqrt(12.0) * (run_random(&random) - 0.5);
			values[1] += step >= STEPS ? log(2.0) : 0.0;
			verdict_shift_step(&shift, values, step);
			assert_true(shift.slow_count == 0 || step >= STEPS);
		}
		assert_true(shift.slow[1] && !shift.slow[0]);
		verdict_shift_free(&shift);
	}
}

/* One of 64 takes 6 % longer, where 10 % is looked for, and then 10 %. */
static void a_shift_that_is_surely_less_is_not_named(void **state)
{
	(void)state;
	enum { COUNT = 64, STEPS = 2000, SOON = 20 };
	static const struct verdict_shift_limits limits = {1, 0.00953, 0.0953, 0.005, 0.01, 10000.0};
	static const int32_t one_set[COUNT];
	static const double sigma = 0.005;
	struct run random = {0};
	struct verdict_shift shift;
	assert_int_equal(verdict_shift_init(&shift, &limits, COUNT, one_set, 1), 0);
	for (int64_t step = 0; step < STEPS + SOON; step++) {
		double values[COUNT];
		for (int32_t i = 0; i < COUNT; i++)
			values[i] = sigma * sqrt(12.0) * (run_random(&random) - 0.5);
		values[3] += log(step < STEPS ? 1.06 : 1.10);
		verdict_shift_step(&shift, values, step);
		assert_true(step >= STEPS || shift.slow_count == 0);
	}
	assert_int_equal(shift.slow_count, 1);
	assert_true(shift.slow[3]);
	verdict_shift_free(&shift);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stage_of_one_or_two_is_compared_with_its_own_first_steps),
		cmocka_unit_test(a_stage_that_reports_late_does_not_make_the_others_slow),
		cmocka_unit_test(a_set_is_not_tested_in_its_own_first_steps),
		cmocka_unit_test(slow_ones_are_not_counted_in_the_noise),
		cmocka_unit_test(a_shift_that_is_surely_less_is_not_named),
		cmocka_unit_test(a_great_shift_is_found_soon_behind_great_noise),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
