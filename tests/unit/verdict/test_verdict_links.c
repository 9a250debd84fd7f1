/* Verdicts of links and NICs that are slow, and the matrix of delays. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/verdict/run.h"

enum { ONSET = 40 };

/* What the streams of a membership take longer. */
static double (*link_factor)(const struct run *run, int32_t group, int32_t rank);

/* The rank reports its edges of the pipeline and its groups of a kind of collective. */
static void report_transfers(const struct run *run, enum wlb_verdict_group_kind kind, struct wlb_verdict_step *step)
{
	static struct wlb_verdict_transfer all[RUN_RANKS][4];
	struct run *noisy = (struct run *)run;
	int32_t r = step->rank, count = 0;
	for (int32_t g = 0; g < run->world->group_count; g++) {
		const struct wlb_verdict_group *group = &run->world->groups[g];
		int32_t member = -1;
		for (int32_t m = 0; m < group->count; m++)
			member = group->members[m] == r ? m : member;
		if (member < 0 || (group->kind == WLB_VERDICT_PP ? member == 0 : group->kind != kind))
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

static void transfers(const struct run *run, struct wlb_verdict_step *step)
{
	report_transfers(run, WLB_VERDICT_DP, step);
}

static void edges_and_tp(const struct run *run, struct wlb_verdict_step *step)
{
	report_transfers(run, WLB_VERDICT_TP, step);
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

/* The NICs of two nodes, which are neighbours in the pipeline, so that the links between them are slow twice. */
static double slow_nics_of_nodes_2_and_3(const struct run *run, int32_t group, int32_t rank)
{
	const struct wlb_verdict_group *g = &run->world->groups[group];
	for (int32_t m = 0; m < 2 && g->kind == WLB_VERDICT_PP; m++)
		if (run->world->node_of[g->members[m]] / 2 == 1)
			return 1.8;
	return g->kind == WLB_VERDICT_DP && run->world->node_of[rank] / 2 == 1 ? 1.8 : 1.0;
}

static double slow_nic_of_node_3_and_an_edge(const struct run *run, int32_t group, int32_t rank)
{
	const struct wlb_verdict_group *g = &run->world->groups[group];
	if (g->kind == WLB_VERDICT_PP && g->members[0] == 8 && g->members[1] == 10)
		return 1.8;
	return slow_nic_of_node_3(run, group, rank);
}

/* Runs until both verdicts are there, and fails where there is a third. */
static void expect_two(struct run *run)
{
	run_expect_none(run, ONSET, transfers);
	for (int i = 0; i < 30; i++) {
		run_step(run, transfers);
		assert_in_range(run->count, 0, 2);
	}
	assert_int_equal(run->count, 2);
}

static void two_faults_are_two_verdicts(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 8, 2);
	link_factor = slow_nics_of_nodes_2_and_3;
	expect_two(&run);
	for (int32_t v = 0; v < 2; v++) {
		assert_int_equal(run.verdicts[v].kind, WLB_VERDICT_SLOW_NIC);
		assert_int_equal(run.verdicts[v].node / 2, 1);
	}
	assert_int_equal(run.verdicts[0].node + run.verdicts[1].node, 5);
	run_end(&run);
	run_begin(&run, 2, 1, 2, 8, 2);
	link_factor = slow_nic_of_node_3_and_an_edge;
	expect_two(&run);
	assert_int_equal(run_find(&run, WLB_VERDICT_SLOW_NIC)->node, 3);
	assert_int_equal(run_find(&run, WLB_VERDICT_SLOW_LINK)->ranks[0], 8);
	assert_int_equal(run_find(&run, WLB_VERDICT_SLOW_LINK)->ranks[1], 10);
	run_end(&run);
}

/* The NIC of the node in the mid of a pipeline over three nodes, without any collective. */
static double slow_nic_of_the_second_stage(const struct run *run, int32_t group, int32_t rank)
{
	(void)rank;
	const struct wlb_verdict_group *g = &run->world->groups[group];
	if (g->kind != WLB_VERDICT_PP)
		return 1.0;
	return run->world->node_of[g->members[0]] == 1 || run->world->node_of[g->members[1]] == 1 ? 1.8 : 1.0;
}

/* Both edges between two nodes that have no other: it may be either NIC, or the link. */
static double slow_between_nodes_0_and_1(const struct run *run, int32_t group, int32_t rank)
{
	(void)rank;
	const struct wlb_verdict_group *g = &run->world->groups[group];
	return g->kind == WLB_VERDICT_PP && run->world->node_of[g->members[0]] < 2 ? 1.8 : 1.0;
}

static void the_fewest_nics_that_explain_it_are_named(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 4, 1, 3, 1, 4);
	link_factor = slow_nic_of_the_second_stage;
	run_expect_none(&run, ONSET, edges_and_tp);
	run_until(&run, WLB_VERDICT_SLOW_NIC, 50, edges_and_tp);
	run_steps(&run, 20, edges_and_tp);
	assert_int_equal(run_expect_one(&run, WLB_VERDICT_SLOW_NIC, WLB_VERDICT_CONFIRMED)->node, 1);
	run_end(&run);
	run_begin(&run, 4, 1, 2, 1, 4);
	link_factor = slow_between_nodes_0_and_1;
	run_expect_none(&run, ONSET, edges_and_tp);
	run_steps(&run, 20, edges_and_tp);
	/* Four edges in each direction. */
	assert_int_equal(run.count, 8);
	assert_null(run_find(&run, WLB_VERDICT_SLOW_NIC));
	run_end(&run);
}

/* Four nodes of four ranks. Node 0 is the neighbour of nodes 1 and 2 in pipelines, which have slow NICs, so that most
 * of what it carries is slow, too. Its part of collectives with node 3 is not. */
enum { BETWEEN, FIRST_SLOW, SECOND_SLOW, FINE, NODES, PER_NODE = 4, EDGES = 12, COLLECTIVES = 4, WITHIN = 4 };

static double slow_nics_of_the_neighbours(const struct run *run, int32_t group, int32_t rank)
{
	const struct wlb_verdict_group *g = &run->world->groups[group];
	if (g->kind == WLB_VERDICT_PP)
		return 1.8;
	return rank / PER_NODE == FIRST_SLOW ? 1.8 : 1.0;
}

static void add_group(struct wlb_verdict_world *world, struct wlb_verdict_group *groups,
                      enum wlb_verdict_group_kind kind, int32_t *members)
{
	groups[world->group_count++] = (struct wlb_verdict_group){.kind = kind, .members = members, .count = 2};
}

static void a_node_between_two_slow_nics_is_not_named(void **state)
{
	(void)state;
	int32_t node_of[NODES * PER_NODE], members[EDGES + COLLECTIVES + WITHIN][2] = {{0}};
	struct wlb_verdict_group groups[EDGES + COLLECTIVES + WITHIN];
	struct wlb_verdict_world world = {
		.ranks = NODES * PER_NODE, .nodes = NODES, .node_of = node_of, .groups = groups};
	for (int32_t r = 0; r < world.ranks; r++)
		node_of[r] = r / PER_NODE;
	for (int32_t i = 0; i < EDGES; i++) {
		int32_t neighbour = i < 8 ? FIRST_SLOW : SECOND_SLOW, place = i / 2 % PER_NODE;
		members[i][i % 2] = BETWEEN * PER_NODE + place;
		members[i][1 - i % 2] = neighbour * PER_NODE + place;
		add_group(&world, groups, WLB_VERDICT_PP, members[i]);
	}
	for (int32_t i = EDGES; i < EDGES + COLLECTIVES; i++) {
		members[i][0] = (i % 2 == 0 ? BETWEEN : FIRST_SLOW) * PER_NODE + 2 + i / 2 % 2;
		members[i][1] = FINE * PER_NODE + i % PER_NODE;
		add_group(&world, groups, WLB_VERDICT_DP, members[i]);
	}
	for (int32_t i = 0; i < WITHIN; i++) {
		int32_t *ranks = members[EDGES + COLLECTIVES + i];
		ranks[0] = FINE * PER_NODE + i;
		ranks[1] = FINE * PER_NODE + (i + 1) % PER_NODE;
		add_group(&world, groups, WLB_VERDICT_DP, ranks);
	}
	struct run run;
	run_begin_in(&run, &world);
	link_factor = slow_nics_of_the_neighbours;
	expect_two(&run);
	for (int32_t v = 0; v < 2; v++) {
		assert_int_equal(run.verdicts[v].kind, WLB_VERDICT_SLOW_NIC);
		assert_in_range(run.verdicts[v].node, FIRST_SLOW, SECOND_SLOW);
	}
	run_end(&run);
}

/* Four nodes of one rank, tp 2 and dp 2. The members of a group have one transfer. */
enum { SQUARE = 4 };
static int32_t square_members[SQUARE][2] = {{0, 1}, {2, 3}, {0, 2}, {1, 3}}, square_node_of[SQUARE] = {0, 1, 2, 3};

static struct wlb_verdict_world square_of(struct wlb_verdict_group groups[SQUARE])
{
	for (int32_t g = 0; g < SQUARE; g++)
		groups[g] = (struct wlb_verdict_group){.kind = g < 2 ? WLB_VERDICT_TP : WLB_VERDICT_DP,
		                                       .members = square_members[g],
		                                       .count = 2,
		                                       .has_one_transfer = 1,
		                                       .alike = 1 + g};
	return (struct wlb_verdict_world){
		.ranks = SQUARE, .nodes = SQUARE, .node_of = square_node_of, .groups = groups, .group_count = SQUARE};
}

/* In each step the members tell the transfer of both, one of them with an error, or the other alone does. Group 3 takes
 * twice as long for a byte. */
static void one_transfer(const struct run *run, struct wlb_verdict_step *step)
{
	static struct wlb_verdict_transfer all[SQUARE][2];
	struct run *noisy = (struct run *)run;
	int32_t r = step->rank, count = 0;
	for (int32_t g = 0; g < SQUARE; g++) {
		int32_t member = square_members[g][1] == r;
		if (square_members[g][member] != r)
			continue;
		int errs = (run->step + g) % 2 == member;
		if (errs && run->step % 3 == 0)
			continue;
		double factor = (run->step >= ONSET ? link_factor(run, g, r) : 1.0) * (g == 3 ? 2.0 : 1.0);
		all[r][count++] =
			(struct wlb_verdict_transfer){.group = g,
		                                      .calls = 4,
		                                      .bytes = 1e6,
		                                      .transfer_s = 0.01 * factor * (1.0 + 0.05 * run_random(noisy)) +
		                                                    (errs ? 0.3 * run_random(noisy) : 0.0)};
	}
	step->transfers = all[r];
	step->transfer_count = count;
}

static double no_link(const struct run *run, int32_t group, int32_t rank)
{
	(void)run, (void)group, (void)rank;
	return 1.0;
}

static double links_of_node_1(const struct run *run, int32_t group, int32_t rank)
{
	(void)run, (void)rank;
	return group == 0 || group == 3 ? 1.8 : 1.0;
}

static double link_of_nodes_0_and_2(const struct run *run, int32_t group, int32_t rank)
{
	(void)run, (void)rank;
	return group == 2 ? 1.8 : 1.0;
}

static void members_that_have_one_transfer(void **state)
{
	(void)state;
	struct run run;
	struct wlb_verdict_group groups[SQUARE];
	struct wlb_verdict_world world = square_of(groups);
	run_begin_in(&run, &world);
	link_factor = no_link;
	run_expect_none(&run, 3 * ONSET, one_transfer);
	run_end(&run);
	run_begin_in(&run, &world);
	link_factor = links_of_node_1;
	run_expect_none(&run, ONSET, one_transfer);
	run_until(&run, WLB_VERDICT_SLOW_NIC, 50, one_transfer);
	run_steps(&run, 20, one_transfer);
	const struct wlb_verdict *verdict = run_expect_one(&run, WLB_VERDICT_SLOW_NIC, WLB_VERDICT_CONFIRMED);
	assert_int_equal(verdict->node, 1);
	assert_non_null(strstr(verdict->evidence, "of 2 streams of messages from and to node 1, 2 take"));
	run_end(&run);
	run_begin_in(&run, &world);
	link_factor = link_of_nodes_0_and_2;
	run_expect_none(&run, ONSET, one_transfer);
	run_until(&run, WLB_VERDICT_SLOW_LINK, 50, one_transfer);
	run_steps(&run, 20, one_transfer);
	verdict = run_expect_one(&run, WLB_VERDICT_SLOW_LINK, WLB_VERDICT_CONFIRMED);
	assert_int_equal(verdict->group, 2);
	assert_int_equal(verdict->rank_count, 2);
	assert_int_equal(verdict->ranks[0], 0);
	assert_int_equal(verdict->ranks[1], 2);
	run_end(&run);
}

static void wrong_groups_are_refused(void **state)
{
	(void)state;
	struct wlb_verdict_error error;
	struct wlb_verdict_group groups[SQUARE];
	struct wlb_verdict_world world = square_of(groups);
	groups[3].alike = SQUARE + 1;
	assert_null(wlb_verdict_new(&world, NULL, &error));
	assert_non_null(strstr(error.message, "alike of group 3 is 5: it must be 0 to 4"));
	groups[3].alike = SQUARE;
	groups[1].kind = WLB_VERDICT_PP;
	assert_null(wlb_verdict_new(&world, NULL, &error));
	assert_non_null(strstr(error.message, "group 1: has_one_transfer must be 0 for an edge of a pipeline"));
	struct wlb_verdict_options options;
	wlb_verdict_options_init(&options);
	groups[1].kind = WLB_VERDICT_TP;
	options.slow_link = 0.01;
	assert_null(wlb_verdict_new(&world, &options, &error));
	assert_non_null(strstr(error.message, "slow_link 0.01: it must be 0.02 to 10"));
}

static void the_matrix_of_delays_is_told(void **state)
{
	(void)state;
	struct run run;
	struct wlb_verdict_delay delay;
	struct wlb_verdict_error error;
	run_begin(&run, 2, 1, 2, 8, 2);
	assert_int_equal(wlb_verdict_delay_of_nodes(run.detector, 0, 1, &delay, &error), -1);
	assert_non_null(strstr(error.message, "no messages from node 0 to node 1"));
	link_factor = slow_edge;
	run_steps(&run, ONSET + 80, transfers);
	/* A megabyte takes 10.5 ms in the mean, 18.9 ms on the slow edge from rank 1 to rank 3. */
	assert_int_equal(wlb_verdict_delay_of_ranks(run.detector, 1, 3, &delay, &error), 0);
	assert_int_equal(delay.streams, 1);
	assert_float_equal(delay.expected_s, 10.5, 0.5);
	assert_float_equal(delay.measured_s, 18.9, 0.9);
	assert_float_equal(delay.longer_percent, 80.0, 8.0);
	/* Rank 1 also sends its part of a collective, at the usual speed. */
	assert_float_equal(delay.row_percent, 40.0, 8.0);
	assert_non_null(strstr(delay.evidence, "row rank 1 (source), column rank 3 (destination)"));
	assert_int_equal(wlb_verdict_delay_of_ranks(run.detector, 3, 1, &delay, NULL), 0);
	assert_float_equal(delay.longer_percent, 0.0, 5.0);
	/* Of the nodes two edges, of which one is slow; their row has two more streams. */
	assert_int_equal(wlb_verdict_delay_of_nodes(run.detector, 0, 1, &delay, &error), 0);
	assert_int_equal(delay.streams, 2);
	assert_float_equal(delay.longer_percent, 40.0, 8.0);
	assert_float_equal(delay.row_percent, 0.0, 5.0);
	assert_float_equal(delay.column_percent, 0.0, 5.0);
	assert_non_null(strstr(delay.evidence, "row node 0 (source), column node 1 (destination)"));
	/* The diagonal: what it moves in collectives. */
	assert_int_equal(wlb_verdict_delay_of_nodes(run.detector, 5, 5, &delay, &error), 0);
	assert_int_equal(delay.streams, 2);
	delay.streams = 77;
	assert_int_equal(wlb_verdict_delay_of_nodes(run.detector, 0, 5, &delay, &error), -1);
	assert_int_equal(wlb_verdict_delay_of_nodes(run.detector, 0, 16, &delay, &error), -1);
	assert_non_null(strstr(error.message, "nodes are 0 to 15"));
	assert_int_equal(wlb_verdict_delay_of_ranks(run.detector, -1, 0, &delay, &error), -1);
	assert_non_null(strstr(error.message, "ranks are 0 to 31"));
	assert_int_equal(delay.streams, 77);
	run_end(&run);
	/* The whole row and column of a node whose NIC is slow. */
	run_begin(&run, 2, 1, 2, 8, 2);
	link_factor = slow_nic_of_node_3;
	run_steps(&run, ONSET + 80, transfers);
	assert_int_equal(wlb_verdict_delay_of_nodes(run.detector, 3, 2, &delay, NULL), 0);
	assert_float_equal(delay.longer_percent, 80.0, 8.0);
	assert_float_equal(delay.row_percent, 80.0, 8.0);
	/* Node 2 receives from node 3, and its part of collectives. */
	assert_float_equal(delay.column_percent, 40.0, 8.0);
	assert_non_null(strstr(run.verdicts[0].evidence, "its row (source) takes"));
	run_end(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links_and_nics_are_told_apart),
		cmocka_unit_test(two_faults_are_two_verdicts),
		cmocka_unit_test(the_fewest_nics_that_explain_it_are_named),
		cmocka_unit_test(a_node_between_two_slow_nics_is_not_named),
		cmocka_unit_test(members_that_have_one_transfer),
		cmocka_unit_test(wrong_groups_are_refused),
		cmocka_unit_test(the_matrix_of_delays_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
