/* Verdicts of loaders, links and NICs that are slow, and of values that are bad. */
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

/* Each rank reports its edge of the pipeline and its dp group; link_factor is what a membership takes. */
static double (*link_factor)(const struct run *run, int32_t group, int32_t rank);

static void transfers(const struct run *run, struct wlb_verdict_step *step)
{
	static struct wlb_verdict_transfer all[RUN_RANKS][4];
	struct run *noisy = (struct run *)run;
	int32_t r = step->rank, count = 0;
	for (int32_t g = 0; g < run->world->group_count; g++) {
		const struct wlb_verdict_group *group = &run->world->groups[g];
		int32_t member = -1;
		for (int32_t m = 0; m < group->count; m++)
			member = group->members[m] == r ? m : member;
		if (member < 0 || (group->kind == WLB_VERDICT_PP ? member == 0 : group->kind != WLB_VERDICT_DP))
			continue;
		double factor = run->step >= ONSET ? link_factor(run, g, r) : 1.0;
		all[r][count++] =
			(struct wlb_verdict_transfer){.group = g,
		                                      .calls = 4,
		                                      .bytes = 1e6,
		                                      .transfer_s = 0.01 * factor * (1.0 + 0.1 * run_random(noisy))};
	}
	step->transfers = all[r];
	step->transfer_count = count;
}

static double slow_edge(const struct run *run, int32_t group, int32_t rank)
{
	(void)rank;
	const struct wlb_verdict_group *g = &run->world->groups[group];
	return g->kind == WLB_VERDICT_PP && g->members[0] == 1 && g->members[1] == 3 ? 1.8 : 1.0;
}

static double slow_in_dp(const struct run *run, int32_t group, int32_t rank)
{
	return run->world->groups[group].kind == WLB_VERDICT_DP && rank == 6 ? 1.8 : 1.0;
}

static double slow_nic_of_node_3(const struct run *run, int32_t group, int32_t rank)
{
	const struct wlb_verdict_group *g = &run->world->groups[group];
	if (g->kind == WLB_VERDICT_PP)
		return run->world->node_of[g->members[0]] == 3 || run->world->node_of[g->members[1]] == 3 ? 1.8 : 1.0;
	return run->world->node_of[rank] == 3 ? 1.8 : 1.0;
}

static void links_and_nics_are_told_apart(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 8, 2); /* each stage of a replica is a node */
	link_factor = slow_edge;
	run_expect_none(&run, ONSET, transfers);
	run_until(&run, WLB_VERDICT_SLOW_LINK, 50, transfers);
	assert_int_equal(run.verdicts[0].rank_count, 2);
	assert_int_equal(run.verdicts[0].ranks[0], 1);
	assert_int_equal(run.verdicts[0].ranks[1], 3);
	run_end(&run);
	run_begin(&run, 2, 1, 2, 8, 2);
	link_factor = slow_in_dp;
	run_expect_none(&run, ONSET, transfers);
	run_until(&run, WLB_VERDICT_SLOW_LINK, 50, transfers);
	assert_int_equal(run.verdicts[0].rank_count, 1);
	assert_int_equal(run.verdicts[0].ranks[0], 6);
	run_end(&run);
	run_begin(&run, 2, 1, 2, 8, 2);
	link_factor = slow_nic_of_node_3;
	run_expect_none(&run, ONSET, transfers);
	run_until(&run, WLB_VERDICT_SLOW_NIC, 50, transfers);
	assert_int_equal(run.verdicts[0].node, 3);
	/* Two ranks send to and receive from their neighbours, and are in a dp group each. */
	assert_non_null(strstr(run.verdicts[0].evidence, "of 6 streams of messages from and to node 3, 6 take"));
	run_steps(&run, 20, transfers);
	assert_int_equal(run.count, 1);
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
		cmocka_unit_test(links_and_nics_are_told_apart),
		cmocka_unit_test(bad_values_are_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
