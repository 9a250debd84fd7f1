/* Worlds and options that are refused, the groups of a layout, order statistics. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "libverdict/quantile.h"
#include "tests/unit/verdict/run.h"

static void refused(const struct wlb_verdict_world *world, const struct wlb_verdict_options *options,
                    const char *message)
{
	struct wlb_verdict_error error = {""};
	assert_null(wlb_verdict_new(world, options, &error));
	if (strstr(error.message, message) == NULL)
		fail_msg("'%s' does not have '%s'", error.message, message);
	assert_null(wlb_verdict_new(world, options, NULL));
}

static void wrong_worlds_are_refused(void **state)
{
	(void)state;
	const int32_t node_of[] = {0, 0, 1, 1}, bad_nodes[] = {0, 0, 2, 1}, members[] = {0, 1, 1, 7};
	struct wlb_verdict_group group = {.kind = WLB_VERDICT_DP, .members = members, .count = 2};
	const struct wlb_verdict_world good = {
		.ranks = 4, .nodes = 2, .node_of = node_of, .groups = &group, .group_count = 1};
	struct wlb_verdict_world world = good;
	world.ranks = 0;
	refused(&world, NULL, "ranks is 0");
	world = good;
	world.nodes = 5;
	refused(&world, NULL, "nodes is 5");
	world = good;
	world.node_of = bad_nodes;
	refused(&world, NULL, "node_of of rank 2 is 2");
	world = good;
	world.peers_of = (const int32_t[]){0, 0, -1, 0};
	refused(&world, NULL, "peers_of of rank 2 is -1");
	group.count = 3;
	refused(&good, NULL, "rank 1 twice");
	group.members = members + 2;
	group.count = 2;
	refused(&good, NULL, "has rank 7");
	group.count = 1;
	refused(&good, NULL, "1 members");
	group.kind = WLB_VERDICT_PP;
	group.members = node_of;
	group.count = 3;
	refused(&good, NULL, "edge of a pipeline with 3 members");
	group.kind = (enum wlb_verdict_group_kind)9;
	refused(&good, NULL, "kind 9: use a value");
}

static void wrong_options_are_refused(void **state)
{
	(void)state;
	const int32_t node_of[] = {0, 0};
	const struct wlb_verdict_world world = {.ranks = 2, .nodes = 1, .node_of = node_of};
	struct wlb_verdict_options options;
	wlb_verdict_options_init(&options);
	options.confirm_s = 1.0;
	refused(&world, &options, "confirm_s 1");
	wlb_verdict_options_init(&options);
	options.slow_share = 0.001;
	refused(&world, &options, "slow_share 0.001");
	wlb_verdict_options_init(&options);
	options.slow_link = 0.01;
	refused(&world, &options, "slow_link 0.01: it must be 0.02 to 10");
	wlb_verdict_options_init(&options);
	options.false_alarms = 0.0;
	refused(&world, &options, "false_alarms 0");
	struct wlb_verdict_detector *detector = wlb_verdict_new(&world, NULL, NULL);
	assert_non_null(detector);
	wlb_verdict_free(detector);
	wlb_verdict_free(NULL);
}

static void the_ends_of_the_ranges_of_options_are_taken(void **state)
{
	(void)state;
	const int32_t node_of[] = {0, 0};
	const struct wlb_verdict_world world = {.ranks = 2, .nodes = 1, .node_of = node_of};
	static const double slow_share[] = {0.01, 10.0}, slow_link[] = {0.02, 10.0};
	for (int i = 0; i < 2; i++) {
		struct wlb_verdict_options options;
		wlb_verdict_options_init(&options);
		options.slow_share = slow_share[i];
		options.slow_link = slow_link[i];
		struct wlb_verdict_detector *detector = wlb_verdict_new(&world, &options, NULL);
		assert_non_null(detector);
		wlb_verdict_free(detector);
	}
}

static void layouts_have_their_groups(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 2, 2, 2, 4);
	assert_int_equal(run.world->ranks, 16);
	assert_int_equal(run.world->nodes, 4);
	/* 8 tp, 8 cp, 8 neighbours in both directions, 8 dp, and all. */
	assert_int_equal(run.world->group_count, 8 + 8 + 16 + 8 + 1);
	run_group(&run, WLB_VERDICT_TP, 6, 7);
	run_group(&run, WLB_VERDICT_CP, 5, 7);
	run_group(&run, WLB_VERDICT_PP, 9, 13);
	run_group(&run, WLB_VERDICT_PP, 13, 9);
	run_group(&run, WLB_VERDICT_DP, 3, 11);
	run_group(&run, WLB_VERDICT_WORLD, 0, 15);
	assert_int_equal(run.world->peers_of[3], 0);
	assert_int_equal(run.world->peers_of[4], 1);
	assert_int_equal(run.world->node_of[11], 2);
	run_end(&run);
	struct wlb_verdict_error error;
	assert_null(wlb_verdict_world_of_layout(&(struct wlb_verdict_layout){1, 1, 0, 1, 1}, &error));
	assert_non_null(strstr(error.message, "pp=0"));
	assert_null(wlb_verdict_world_of_layout(&(struct wlb_verdict_layout){1 << 11, 1 << 11, 1, 1, 1}, &error));
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void quantiles_are_those_of_sorted_values(void **state)
{
	(void)state;
	struct run run = {0};
	for (int32_t count = 1; count < 60; count++)
		for (int i = 0; i < 20; i++) {
			double values[64], sorted[64], share = i == 0 ? 0.0 : i == 1 ? 1.0 : run_random(&run);
			for (int32_t k = 0; k < count; k++)
				values[k] = sorted[k] = (int)(run_random(&run) * 20.0);
			qsort(sorted, (size_t)count, sizeof(double), compare);
			double at = share * (count - 1);
			int32_t below = (int32_t)at, above = below + 1 < count ? below + 1 : below;
			double expected = sorted[below] + (at - below) * (sorted[above] - sorted[below]);
			assert_float_equal(verdict_quantile(values, count, share), expected, 1e-9);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_worlds_are_refused),
		cmocka_unit_test(wrong_options_are_refused),
		cmocka_unit_test(the_ends_of_the_ranges_of_options_are_taken),
		cmocka_unit_test(layouts_have_their_groups),
		cmocka_unit_test(quantiles_are_those_of_sorted_values),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
