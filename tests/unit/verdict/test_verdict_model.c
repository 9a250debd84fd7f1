/* The length of a step that its ranks' computation explains. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "libverdict/step_model.h"

static double seconds_of(int tp, int cp, int pp, int dp, int micro_batches, const double *computed_s)
{
	struct wlb_verdict_layout layout = {tp, cp, pp, dp, 1};
	struct wlb_verdict_world *given = wlb_verdict_world_of_layout(&layout, NULL);
	struct verdict_world world;
	struct verdict_step_model model;
	assert_non_null(given);
	assert_int_equal(verdict_world_copy(&world, given, NULL), 0);
	assert_int_equal(verdict_step_model_init(&model, &world, micro_batches), 0);
	double seconds = verdict_step_model_s(&model, computed_s);
	verdict_step_model_free(&model);
	verdict_world_free(&world);
	wlb_verdict_world_free(given);
	return seconds;
}

static void a_step_is_as_long_as_its_slowest(void **state)
{
	(void)state;
	const double computed_s[] = {1.0, 3.0, 2.0, 5.0, 1.0, 1.0, 4.0, 1.0};
	/* Replicas. */
	assert_float_equal(seconds_of(1, 1, 1, 8, 0, computed_s), 5.0, 1e-12);
	/* Two stages, 4 micro-batches: replicas {1, 3}, {2, 5}, {1, 1}, {4, 1}; the longest is 5 + 2 / 4. */
	assert_float_equal(seconds_of(1, 1, 2, 4, 4, computed_s), 5.5, 1e-12);
	/* Four micro-batches for each of two stages, where their number is not given. */
	assert_float_equal(seconds_of(1, 1, 2, 4, 0, computed_s), 5.25, 1e-12);
	/* Stages of two tp ranks: {3, 5} and {1, 4}. */
	assert_float_equal(seconds_of(2, 1, 2, 2, 2, computed_s), 6.5, 1e-12);
	/* Stages of two cp ranks, and of two times two. */
	assert_float_equal(seconds_of(1, 2, 2, 2, 2, computed_s), 6.5, 1e-12);
	assert_float_equal(seconds_of(2, 2, 2, 1, 2, computed_s), 7.0, 1e-12);
}

/* tp 2, cp 2, pp 2, dp 2: two replicas of two times four ranks, of which each takes its own time. */
static void a_replica_depends_on_its_own_ranks(void **state)
{
	(void)state;
	struct wlb_verdict_layout layout = {2, 2, 2, 2, 4};
	struct wlb_verdict_world *given = wlb_verdict_world_of_layout(&layout, NULL);
	struct verdict_world world;
	struct verdict_step_model model;
	double computed_s[16];
	assert_int_equal(verdict_world_copy(&world, given, NULL), 0);
	assert_int_equal(verdict_step_model_init(&model, &world, 4), 0);
	assert_int_equal(model.replicas, 2);
	for (int32_t r = 0; r < 16; r++) {
		assert_int_equal(model.replica_of[r], r / 8);
		computed_s[r] = 1.0;
	}
	/* Ranks of both stages that only tp and cp groups together bring into one pipeline. */
	computed_s[0] = 2.0;
	computed_s[7] = 3.0;
	computed_s[9] = 4.0;
	assert_float_equal(verdict_step_model_replica_s(&model, 0, computed_s), 3.5, 1e-12);
	assert_float_equal(verdict_step_model_replica_s(&model, 1, computed_s), 4.25, 1e-12);
	assert_float_equal(verdict_step_model_s(&model, computed_s), 4.25, 1e-12);
	computed_s[9] = 1.5;
	assert_float_equal(verdict_step_model_s(&model, computed_s), 3.5, 1e-12);
	verdict_step_model_free(&model);
	verdict_world_free(&world);
	wlb_verdict_world_free(given);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_is_as_long_as_its_slowest),
		cmocka_unit_test(a_replica_depends_on_its_own_ranks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
