/* Verdicts of runs in which nothing moves. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/verdict/run.h"

static void the_rank_at_the_end_of_the_chain_hangs(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 2, 2);
	run_block_on_rank_0(&run);
	run_seconds(&run, 4);
	run_expect_no_verdict(&run);
	run_seconds(&run, 2);
	const struct wlb_verdict *verdict = run_expect_one(&run, WLB_VERDICT_HANG, WLB_VERDICT_SUSPECTED);
	uint64_t id = verdict->id;
	assert_true(id > 0);
	run_seconds(&run, 5);
	verdict = run_expect_one(&run, WLB_VERDICT_HANG, WLB_VERDICT_CONFIRMED);
	assert_int_equal(verdict->id, id);
	assert_int_equal(verdict->rank_count, 1);
	assert_int_equal(verdict->ranks[0], 0);
	assert_int_equal(verdict->since_step, 10);
	assert_float_equal(verdict->since_s, 4.0, 1.1);
	assert_float_equal(verdict->cost_percent, 100.0, 0.0);
	assert_true(verdict->certainty > 0.5 && verdict->certainty <= 1.0);
	assert_non_null(strstr(verdict->evidence, "rank 0 (node 0, step 10) is computing"));
	assert_non_null(strstr(verdict->evidence, "7 of 8 ranks are blocked"));
	/* It goes on after all: the verdict is reported as over, once. */
	run_call(&run, 0, run_group(&run, WLB_VERDICT_TP, 0, 1));
	run_do(&run, 0, WLB_VERDICT_COMPUTING);
	run_do(&run, 1, WLB_VERDICT_COMPUTING);
	run_seconds(&run, 1);
	assert_int_equal(run_expect_one(&run, WLB_VERDICT_HANG, WLB_VERDICT_OVER)->id, id);
	run_seconds(&run, 1);
	run_expect_no_verdict(&run);
	run_end(&run);
}

/* Watched from step 10 on, where steps of up to 6 s were known to have ended before: no warm-up, and three times 6 s.
 */
static void a_run_that_stands_still_when_it_is_first_watched_has_a_bound_of_three_known_steps(void **state)
{
	(void)state;
	struct wlb_verdict_options options;
	struct run run;
	for (int known = 0; known < 2; known++) {
		run_begin(&run, 2, 1, 2, 2, 2);
		wlb_verdict_free(run.detector);
		wlb_verdict_options_init(&options);
		options.known_step_s = known ? 6.0 : 0.0;
		run.detector = wlb_verdict_new(run.world, &options, NULL);
		run_block_on_rank_0(&run);
		run_seconds(&run, 17);
		run_expect_no_verdict(&run);
		run_seconds(&run, 3);
		if (known)
			assert_int_equal(run_expect_one(&run, WLB_VERDICT_HANG, WLB_VERDICT_CONFIRMED)->ranks[0], 0);
		else
			run_expect_no_verdict(&run);
		options.known_step_s = -1.0;
		assert_null(wlb_verdict_new(run.world, &options, NULL));
		run_end(&run);
	}
}

/* Ranks 0 and 5 hang. The other waits are for rank 0, and nobody has come to wait for rank 5. */
static void a_second_rank_that_hangs_is_named_though_nobody_waits_for_it(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 2, 2);
	run_block_on_rank_0(&run);
	run_call(&run, 4, run_group(&run, WLB_VERDICT_WORLD, 0, 7));
	run_do(&run, 5, WLB_VERDICT_COMPUTING);
	run.entered[5][run_group(&run, WLB_VERDICT_DP, 1, 5)] = 1;
	run.entered[5][run_group(&run, WLB_VERDICT_WORLD, 0, 7)] = 1;
	run_seconds(&run, 12);
	assert_int_equal(run.count, 2);
	assert_int_equal(run.verdicts[0].kind, WLB_VERDICT_HANG);
	assert_int_equal(run.verdicts[0].ranks[0] + run.verdicts[1].ranks[0], 5);
	run_end(&run);
	/* In a run that goes on it is not named: it may have nothing to do. */
	run_begin(&run, 2, 1, 2, 2, 2);
	for (int i = 0; i < 60; i++) {
		for (int32_t r = 0; r < 5; r++)
			run_do(&run, r, WLB_VERDICT_COMPUTING), run.rank[r].step++;
		run_seconds(&run, 1);
		run_expect_no_verdict(&run);
	}
	run_end(&run);
}

static void a_call_that_all_have_entered_hangs(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 2, 2);
	/* The message from rank 2 to rank 0, sent already, never arrives; rank 1 waits for rank 0. */
	int32_t edge = run_group(&run, WLB_VERDICT_PP, 2, 0);
	run.entered[2][edge] = run.left[2][edge] = 1;
	run_call(&run, 0, edge);
	run_call(&run, 1, run_group(&run, WLB_VERDICT_TP, 0, 1));
	for (int32_t r = 2; r < 8; r++)
		run_call(&run, r, run_group(&run, WLB_VERDICT_WORLD, 0, 7));
	run_seconds(&run, 12);
	const struct wlb_verdict *verdict = run_expect_one(&run, WLB_VERDICT_HANG_COMMUNICATION, WLB_VERDICT_CONFIRMED);
	assert_int_equal(verdict->rank_count, 2);
	assert_int_equal(verdict->ranks[0], 2);
	assert_int_equal(verdict->ranks[1], 0);
	assert_int_equal(verdict->group, edge);
	run_end(&run);
	/* A ring of eight in which rank 5 has received least: the link from rank 4. Without the bytes: all of them. */
	for (int bytes = 0; bytes < 2; bytes++) {
		run_begin(&run, 1, 1, 1, 8, 2);
		int32_t dp = run_group(&run, WLB_VERDICT_DP, 0, 7);
		for (int32_t r = 0; r < 8; r++) {
			run_call(&run, r, dp);
			run.rank[r].received_bytes = bytes ? 1000.0 * (1 + (r + 3) % 8) : -1.0;
		}
		run_seconds(&run, 12);
		verdict = run_expect_one(&run, WLB_VERDICT_HANG_COMMUNICATION, WLB_VERDICT_CONFIRMED);
		assert_int_equal(verdict->rank_count, bytes ? 2 : 8);
		assert_int_equal(verdict->ranks[0], bytes ? 4 : 0);
		assert_int_equal(verdict->ranks[1], bytes ? 5 : 1);
		run_end(&run);
	}
}

/* Node 0 is cut off when it has sent all that the others need: they go on to the next call of the group, where they
 * wait for its ranks, which have not received all. */
static void a_call_that_some_have_left_hangs(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 1, 2, 1, 4, 2);
	int32_t world = run_group(&run, WLB_VERDICT_WORLD, 0, 7);
	for (int32_t r = 0; r < 8; r++)
		run_call(&run, r, world);
	for (int32_t r = 2; r < 8; r++)
		run_call(&run, r, world);
	run_seconds(&run, 12);
	const struct wlb_verdict *verdict = run_expect_one(&run, WLB_VERDICT_HANG_COMMUNICATION, WLB_VERDICT_CONFIRMED);
	assert_int_equal(verdict->group, world);
	assert_int_equal(verdict->sequence, 1);
	run_do(&run, 0, WLB_VERDICT_COMPUTING);
	run_do(&run, 1, WLB_VERDICT_COMPUTING);
	run_seconds(&run, 1);
	run_expect_one(&run, WLB_VERDICT_HANG_COMMUNICATION, WLB_VERDICT_OVER);
	run_end(&run);
}

static void the_node_that_all_stuck_calls_have_is_named(void **state)
{
	(void)state;
	struct run run;
	/* Nodes of one rank: rank 1 has stuck calls with rank 3, its replica, and rank 0, its neighbour. */
	run_begin(&run, 1, 1, 2, 2, 1);
	run_call(&run, 1, run_group(&run, WLB_VERDICT_DP, 1, 3));
	run_call(&run, 3, run_group(&run, WLB_VERDICT_DP, 1, 3));
	int32_t edge = run_group(&run, WLB_VERDICT_PP, 1, 0);
	run.entered[1][edge] = run.left[1][edge] = 1;
	run_call(&run, 0, edge);
	run_call(&run, 2, run_group(&run, WLB_VERDICT_WORLD, 0, 3));
	run_seconds(&run, 12);
	assert_int_equal(run_expect_one(&run, WLB_VERDICT_HANG_COMMUNICATION, WLB_VERDICT_CONFIRMED)->node, 1);
	run_end(&run);
}

/* Eight ranks of which six hang in two collectives of three members each; the others have ended. Nobody tells
 * bytes. Returns the first verdict, of which there is one for each of `expected` nodes or calls. */
static const struct wlb_verdict *hang_in_two_calls(struct run *run, const int32_t *node_of, const int32_t members[2][3],
                                                   int32_t expected)
{
	const struct wlb_verdict_group groups[] = {
		{.kind = WLB_VERDICT_DP, .name = "first", .members = members[0], .count = 3},
		{.kind = WLB_VERDICT_DP, .name = "second", .members = members[1], .count = 3}};
	const struct wlb_verdict_world world = {
		.ranks = 8, .nodes = 4, .node_of = node_of, .groups = groups, .group_count = 2};
	run_begin_in(run, &world);
	for (int32_t r = 0; r < world.ranks; r++)
		run_do(run, r, WLB_VERDICT_ENDED);
	for (int32_t g = 0; g < 2; g++)
		for (int32_t m = 0; m < 3; m++)
			run_call(run, members[g][m], g);
	run_seconds(run, 12);
	assert_int_equal(run->count, expected);
	for (int32_t v = 0; v < expected; v++) {
		assert_int_equal(run->verdicts[v].kind, WLB_VERDICT_HANG_COMMUNICATION);
		assert_int_equal(run->verdicts[v].stage, WLB_VERDICT_CONFIRMED);
	}
	run_end(run);
	return &run->verdicts[0];
}

static void several_calls_tell_the_node_or_the_pair_without_bytes(void **state)
{
	(void)state;
	static const int32_t two_each[] = {0, 0, 1, 1, 2, 2, 3, 3}, three_first[] = {0, 0, 0, 1, 1, 2, 2, 3};
	static const int32_t share_two[2][3] = {{0, 2, 4}, {1, 3, 7}}, share_one[2][3] = {{0, 1, 3}, {2, 5, 7}},
			     share_none[2][3] = {{0, 1, 2}, {4, 5, 6}}, share_three[2][3] = {{0, 2, 4}, {1, 3, 5}};
	struct run run;
	/* Nodes 0, 1 and 2, and nodes 0, 1 and 3. */
	const struct wlb_verdict *verdict = hang_in_two_calls(&run, two_each, share_two, 2);
	for (int32_t v = 0; v < 2; v++) {
		assert_int_equal(verdict[v].node, -1);
		assert_int_equal(verdict[v].rank_count, 2);
		assert_int_equal(verdict[v].ranks[0], v);
		assert_int_equal(verdict[v].ranks[1], 2 + v);
		assert_non_null(strstr(verdict[v].evidence, "nodes 0 and 1 alone are in all of them"));
	}
	/* Node 0, with two ranks in one of them. */
	verdict = hang_in_two_calls(&run, three_first, share_one, 1);
	assert_int_equal(verdict->node, 0);
	assert_non_null(strstr(verdict->evidence, "node 0 alone is in all of them"));
	/* No node is in both, or three are. */
	for (int three = 0; three < 2; three++) {
		verdict = hang_in_two_calls(&run, two_each, three ? share_three : share_none, 2);
		assert_int_equal(verdict->rank_count, 3);
		assert_non_null(strstr(verdict->evidence, "nothing tells which"));
	}
}

static void ranks_that_wait_for_each_other_are_named(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 2, 2);
	/* Rank 0 has come to the tp call, and rank 1 to the call of all. */
	run_call(&run, 0, run_group(&run, WLB_VERDICT_TP, 0, 1));
	for (int32_t r = 1; r < 8; r++)
		run_call(&run, r, run_group(&run, WLB_VERDICT_WORLD, 0, 7));
	run_seconds(&run, 12);
	const struct wlb_verdict *verdict = run_expect_one(&run, WLB_VERDICT_DEADLOCK, WLB_VERDICT_CONFIRMED);
	assert_int_equal(verdict->rank_count, 2);
	assert_int_equal(verdict->ranks[0] + verdict->ranks[1], 1);
	run_end(&run);
}

/* Each of 128 ranks waits in its call with the next for that. `begun` ranks have begun the calls, the others compute.
 */
static int32_t judge_ring(struct wlb_verdict_detector *detector, int32_t begun, double now_s,
                          struct wlb_verdict *verdict)
{
	for (int32_t r = 0; r < 128; r++) {
		const struct wlb_verdict_state state = {.rank = r,
		                                        .report = (uint64_t)now_s,
		                                        .arrived_s = now_s,
		                                        .activity =
		                                                r < begun ? WLB_VERDICT_CALLING : WLB_VERDICT_COMPUTING,
		                                        .process = WLB_VERDICT_RUNNING,
		                                        .step = begun > 0 ? 10 : (int64_t)now_s,
		                                        .group = r < begun ? r : -1,
		                                        .sequence = 1,
		                                        .received_bytes = -1.0};
		assert_int_equal(wlb_verdict_take_state(detector, &state, NULL), 0);
	}
	return wlb_verdict_judge(detector, now_s, verdict, 1);
}

static void a_long_ring_of_ranks_that_wait_for_each_other_is_named(void **state)
{
	enum { RING = 128 };
	(void)state;
	static int32_t node_of[RING], members[RING][2];
	static struct wlb_verdict_group groups[RING];
	for (int32_t r = 0; r < RING; r++) {
		members[r][0] = r;
		members[r][1] = (r + 1) % RING;
		groups[r] = (struct wlb_verdict_group){.kind = WLB_VERDICT_OTHER, .members = members[r], .count = 2};
	}
	const struct wlb_verdict_world world = {
		.ranks = RING, .nodes = 1, .node_of = node_of, .groups = groups, .group_count = RING};
	struct wlb_verdict_detector *detector = wlb_verdict_new(&world, NULL, NULL);
	struct wlb_verdict verdict;
	for (int second = 1; second <= 10; second++)
		assert_int_equal(judge_ring(detector, 0, second, &verdict), 0);
	for (int second = 11; second <= 18; second++)
		assert_int_equal(judge_ring(detector, RING, second, &verdict), 0);
	assert_int_equal(judge_ring(detector, RING, 20, &verdict), 1);
	assert_int_equal(verdict.kind, WLB_VERDICT_DEADLOCK);
	assert_int_equal(verdict.rank_count, RING);
	assert_int_equal(verdict.ranks[0], 0);
	wlb_verdict_free(detector);
}

static void a_rank_that_is_gone_has_crashed(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 2, 2);
	run_block_on_rank_0(&run);
	run_do(&run, 0, WLB_VERDICT_COMPUTING);
	run.rank[0].process = WLB_VERDICT_GONE;
	run_seconds(&run, 3);
	assert_int_equal(run_expect_one(&run, WLB_VERDICT_CRASH, WLB_VERDICT_CONFIRMED)->ranks[0], 0);
	/* The launcher ends the others. */
	for (int32_t r = 1; r < 8; r++) {
		run_do(&run, r, WLB_VERDICT_COMPUTING);
		run.rank[r].process = WLB_VERDICT_GONE;
	}
	run_seconds(&run, 20);
	assert_int_equal(run_expect_one(&run, WLB_VERDICT_CRASH, WLB_VERDICT_CONFIRMED)->ranks[0], 0);
	run_end(&run);
	/* Ranks that have ended are no crash. */
	run_begin(&run, 2, 1, 2, 2, 2);
	for (int32_t r = 0; r < 8; r++) {
		run_do(&run, r, WLB_VERDICT_ENDED);
		run.rank[r].process = WLB_VERDICT_GONE;
	}
	run_seconds(&run, 20);
	run_expect_no_verdict(&run);
	run_end(&run);
}

static void a_node_that_is_silent_while_all_stand_still_is_lost(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 2, 2);
	run_block_on_rank_0(&run);
	run.rank[0].silent = run.rank[1].silent = 1;
	run_seconds(&run, 14);
	const struct wlb_verdict *verdict = run_find(&run, WLB_VERDICT_CRASH);
	assert_non_null(verdict);
	assert_int_equal(run.count, 1);
	assert_int_equal(verdict->node, 0);
	assert_int_equal(verdict->rank_count, 2);
	run_end(&run);
	/* Where the others go on it is the reporter that is lost. */
	run_begin(&run, 2, 1, 2, 2, 2);
	run.rank[0].silent = run.rank[1].silent = 1;
	for (int i = 0; i < 30; i++) {
		for (int32_t r = 0; r < 8; r++)
			run_do(&run, r, WLB_VERDICT_COMPUTING), run.rank[r].step++;
		run_seconds(&run, 1);
		run_expect_no_verdict(&run);
	}
	run_end(&run);
}

/* Another detector, made when steps of `known_step_s` had ended; 0: they are not known. */
static void watch_anew(struct run *run, double known_step_s)
{
	struct wlb_verdict_options options;
	wlb_verdict_options_init(&options);
	options.known_step_s = known_step_s;
	wlb_verdict_free(run->detector);
	run->detector = wlb_verdict_new(run->world, &options, NULL);
	assert_non_null(run->detector);
}

static void a_node_that_has_never_reported_is_lost(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 2, 2);
	watch_anew(&run, 1.0);
	run_block_on_rank_0(&run);
	run.rank[0].silent = run.rank[1].silent = 1;
	run_seconds(&run, 14);
	const struct wlb_verdict *verdict = run_expect_one(&run, WLB_VERDICT_CRASH, WLB_VERDICT_CONFIRMED);
	assert_int_equal(verdict->node, 0);
	assert_non_null(strstr(verdict->evidence, "no rank of node 0 has ever reported"));
	/* In the first steps that are watched others may wait for it for long. */
	watch_anew(&run, 0.0);
	run_seconds(&run, 1790);
	run_expect_no_verdict(&run);
	run_seconds(&run, 15);
	assert_int_equal(run_expect_one(&run, WLB_VERDICT_CRASH, WLB_VERDICT_CONFIRMED)->node, 0);
	run_end(&run);
}

static void a_rank_that_has_never_reported_does_not_hide_its_node(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 2, 2);
	watch_anew(&run, 1.0);
	run.rank[1].silent = 1;
	run_seconds(&run, 3);
	run_block_on_rank_0(&run);
	run.rank[0].silent = 1;
	run_seconds(&run, 14);
	assert_int_equal(run_expect_one(&run, WLB_VERDICT_CRASH, WLB_VERDICT_CONFIRMED)->node, 0);
	run_end(&run);
}

/* Steps end without a report of node 0, or half of the nodes report nothing: nobody is accused when the others wait. */
static void trainers_that_report_of_some_nodes_are_no_fault(void **state)
{
	(void)state;
	for (int half = 0; half < 2; half++) {
		struct run run;
		run_begin(&run, 2, 1, 2, 2, 2);
		watch_anew(&run, 1.0);
		for (int32_t r = 0; r < (half ? 4 : 2); r++)
			run.rank[r].silent = 1;
		run_seconds(&run, 2);
		for (int32_t r = 0; r < run.world->ranks; r++)
			run.rank[r].step += !half;
		run_block_on_rank_0(&run);
		for (int i = 0; i < 2000; i++) {
			run_seconds(&run, 1);
			run_expect_no_verdict(&run);
		}
		run_end(&run);
	}
}

/* All reporters are started anew, and count their reports from 1. */
static void reporters_that_all_start_anew_are_heard_again(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 2, 2);
	for (int i = 0; i < 300; i++) {
		run_seconds(&run, 1);
		for (int32_t r = 0; r < run.world->ranks; r++) {
			run_do(&run, r, WLB_VERDICT_COMPUTING);
			run.rank[r].step++;
		}
	}
	run.report = 0;
	run_block_on_rank_0(&run);
	run_seconds(&run, 30);
	assert_int_equal(run_expect_one(&run, WLB_VERDICT_HANG, WLB_VERDICT_CONFIRMED)->ranks[0], 0);
	run_end(&run);
}

/* All ranks report for 12 s that they are blocked in call 5, and have entered call `entered` of its group, 0: nothing
 * of that; `computing` computes, -1: none. */
static void block_in_call_5(struct run *run, uint64_t entered, int32_t computing)
{
	const struct wlb_verdict_call call = {run_group(run, WLB_VERDICT_DP, 0, 7), entered, entered};
	for (int i = 0; i < 12; i++) {
		run->now_s += 1.0;
		for (int32_t r = 0; r < run->world->ranks; r++) {
			struct wlb_verdict_state state = {.rank = r,
			                                  .report = ++run->report,
			                                  .arrived_s = run->now_s,
			                                  .activity = WLB_VERDICT_CALLING,
			                                  .process = WLB_VERDICT_RUNNING,
			                                  .step = 10,
			                                  .group = call.group,
			                                  .sequence = 5,
			                                  .received_bytes = -1.0,
			                                  .calls = &call,
			                                  .call_count = entered > 0};
			if (r == computing) {
				state.activity = WLB_VERDICT_COMPUTING;
				state.group = -1;
			}
			assert_int_equal(wlb_verdict_take_state(run->detector, &state, NULL), 0);
		}
		run->count = wlb_verdict_judge(run->detector, run->now_s, run->verdicts, RUN_VERDICTS);
	}
}

/* States without `calls`, or with those before the one that blocks: all ranks are blocked, or all but rank 3. */
static void a_blocked_rank_has_entered_its_call(void **state)
{
	(void)state;
	for (uint64_t entered = 0; entered <= 4; entered += 4) {
		struct run run;
		run_begin(&run, 1, 1, 1, 8, 2);
		block_in_call_5(&run, entered, -1);
		assert_int_equal(
			run_expect_one(&run, WLB_VERDICT_HANG_COMMUNICATION, WLB_VERDICT_CONFIRMED)->rank_count, 8);
		run_end(&run);
		run_begin(&run, 1, 1, 1, 8, 2);
		block_in_call_5(&run, entered, 3);
		assert_int_equal(run_expect_one(&run, WLB_VERDICT_HANG, WLB_VERDICT_CONFIRMED)->ranks[0], 3);
		run_end(&run);
	}
}

/* Rank 0 computes all the time, in a step of many parts, or in one: by its reports it has begun one just before. */
static void a_rank_that_begins_the_same_again_does_not_hang(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 2, 2);
	run_block_on_rank_0(&run);
	for (int i = 0; i < 20; i++) {
		run.rank[0].began_s = run.now_s + 0.9;
		run_seconds(&run, 1);
		run_expect_no_verdict(&run);
	}
	run_seconds(&run, 9);
	assert_int_equal(run_expect_one(&run, WLB_VERDICT_HANG, WLB_VERDICT_CONFIRMED)->ranks[0], 0);
	run_end(&run);
	/* A trainer that does not know it reports 0. */
	run_begin(&run, 2, 1, 2, 2, 2);
	run_block_on_rank_0(&run);
	for (int i = 0; i < 12; i++) {
		run.rank[0].began_s = run.now_s + 1.0;
		run_seconds(&run, 1);
	}
	assert_int_equal(run_expect_one(&run, WLB_VERDICT_HANG, WLB_VERDICT_CONFIRMED)->ranks[0], 0);
	run_end(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_rank_at_the_end_of_the_chain_hangs),
		cmocka_unit_test(a_run_that_stands_still_when_it_is_first_watched_has_a_bound_of_three_known_steps),
		cmocka_unit_test(a_second_rank_that_hangs_is_named_though_nobody_waits_for_it),
		cmocka_unit_test(a_call_that_all_have_entered_hangs),
		cmocka_unit_test(a_call_that_some_have_left_hangs),
		cmocka_unit_test(the_node_that_all_stuck_calls_have_is_named),
		cmocka_unit_test(several_calls_tell_the_node_or_the_pair_without_bytes),
		cmocka_unit_test(ranks_that_wait_for_each_other_are_named),
		cmocka_unit_test(a_long_ring_of_ranks_that_wait_for_each_other_is_named),
		cmocka_unit_test(a_rank_that_is_gone_has_crashed),
		cmocka_unit_test(a_node_that_is_silent_while_all_stand_still_is_lost),
		cmocka_unit_test(a_node_that_has_never_reported_is_lost),
		cmocka_unit_test(reporters_that_all_start_anew_are_heard_again),
		cmocka_unit_test(a_rank_that_begins_the_same_again_does_not_hang),
		cmocka_unit_test(a_blocked_rank_has_entered_its_call),
		cmocka_unit_test(a_rank_that_has_never_reported_does_not_hide_its_node),
		cmocka_unit_test(trainers_that_report_of_some_nodes_are_no_fault),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
