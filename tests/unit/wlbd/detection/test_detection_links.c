/* How long calls blocked ranks, and when they entered and left them, become verdicts of links: those of simulated runs
 * in which ranks wait for each other, for links that are slow, or for ranks that are. */
#include "coordinator/wlbd/detection/detection.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "common/rank_trace.h"
#include "coordinator/wlbd/budget.h"

enum { UID = 7, LIMIT_BYTES = 1 << 24, RANKS = 4, NODES = 4, CALLS = 8, MESSAGE_BYTES = 65536, ONSET = 40, STEPS = 90 };

static char *const node_names[NODES] = {"a1", "a2", "a3", "a4"};
static const int node_of[RANKS] = {0, 1, 2, 3};
static const struct wlbd_detection_limits limits = {.hang_after_s = 10, .slow_share = 0.1};
static const double transfer_s = 0.04; /* of a call, on healthy links */

/* A communicator of the run. */
struct group {
	const char *name;
	int ranks[RANKS];
	int count;
	bool is_edge;
	int64_t bytes; /* of a call */
};

/* tp 2, dp 2: every rank is in a group with two others. */
static const struct group of_collectives[] = {
	{"world", {0, 1, 2, 3}, 4, false, 16},         {"tp", {0, 1}, 2, false, MESSAGE_BYTES},
	{"tp", {2, 3}, 2, false, MESSAGE_BYTES},       {"data", {0, 2}, 2, false, MESSAGE_BYTES},
	{"data", {1, 3}, 2, false, 2 * MESSAGE_BYTES},
};

/* pp 2, dp 2. */
static const struct group of_pipelines[] = {
	{"world", {0, 1, 2, 3}, 4, false, 16},           {"data", {0, 2}, 2, false, MESSAGE_BYTES},
	{"data", {1, 3}, 2, false, 2 * MESSAGE_BYTES},   {"pp 0>1", {0, 1}, 2, true, MESSAGE_BYTES},
	{"pp 0>1", {2, 3}, 2, true, MESSAGE_BYTES},      {"pp_back 1>0", {1, 0}, 2, true, MESSAGE_BYTES},
	{"pp_back 1>0", {3, 2}, 2, true, MESSAGE_BYTES},
};

struct run {
	struct wlbd_budget *budget;
	struct wlbd_activities activities;
	struct wlbd_detection *detection;
	struct wlb_layout layout;
	const struct group *groups;
	int group_count;
	int64_t now_ms, step;
	uint64_t random;
	/* From step ONSET on: */
	int slow_node;       /* whose link takes three times as long; -1: none */
	int slow_pair[2];    /* of ranks, whose link does; -1: none */
	int slow_rank;       /* which computes twice as long; -1: none */
	double late_least_s; /* of rank 1 to calls; 0: it comes as the others do */
	const struct wlbd_found_verdict *found;
	int count;
};

static void open_run(struct run *run, struct wlb_layout layout, const struct group *groups, size_t group_count)
{
	const struct wlbd_budget_limits most = {.user_bytes = LIMIT_BYTES, .all_bytes = 2 * LIMIT_BYTES};
	*run = (struct run){.budget = wlbd_budget_new(&most),
	                    .layout = layout,
	                    .groups = groups,
	                    .group_count = (int)group_count,
	                    .now_ms = 1000000,
	                    .random = 88172645463325252ULL,
	                    .slow_node = -1,
	                    .slow_pair = {-1, -1},
	                    .slow_rank = -1};
	run->activities = (struct wlbd_activities){.budget = run->budget, .uid = UID};
	run->detection = wlbd_detection_new(&run->activities);
}

static void open_collectives(struct run *run)
{
	open_run(run, (struct wlb_layout){.tp = 2, .cp = 1, .pp = 1, .dp = 2}, of_collectives,
	         sizeof(of_collectives) / sizeof(of_collectives[0]));
}

static void open_pipelines(struct run *run)
{
	open_run(run, (struct wlb_layout){.tp = 1, .cp = 1, .pp = 2, .dp = 2}, of_pipelines,
	         sizeof(of_pipelines) / sizeof(of_pipelines[0]));
}

/* All memory that was taken must have been given back. */
static void close_run(struct run *run)
{
	wlbd_detection_free(run->detection);
	wlbd_activities_free(&run->activities);
	assert_int_equal(wlbd_budget_take(run->budget, UID, LIMIT_BYTES), WLBD_BUDGET_TAKEN);
	wlbd_budget_free(run->budget);
}

/* Uniform from 0 to 1, the same in every run. */
static double uniform(struct run *run)
{
	run->random ^= run->random << 13;
	run->random ^= run->random >> 7;
	run->random ^= run->random << 17;
	return (double)(run->random >> 11) / 9007199254740992.0;
}

static bool has_rank(const struct group *group, int rank)
{
	for (int m = 0; m < group->count; m++)
		if (group->ranks[m] == rank)
			return true;
	return false;
}

/* How long a call takes once all members are there. */
static double transfer_of(struct run *run, const struct group *group)
{
	const int *pair = run->slow_pair;
	bool is_slow = has_rank(group, run->slow_node) || (has_rank(group, pair[0]) && has_rank(group, pair[1]));
	double usual_s = transfer_s * (double)group->bytes / MESSAGE_BYTES + 1e-4;
	return usual_s * (run->step >= ONSET && is_slow ? 3.0 : 1.0) * (0.95 + 0.1 * uniform(run));
}

/* When a rank comes to a call: it has computed before, unequally long. */
static double comes_at_s(struct run *run, int rank)
{
	double computed_s = 0.06 * uniform(run);
	if (run->step >= ONSET && rank == run->slow_rank)
		computed_s += 0.05;
	return computed_s + (rank == 1 ? run->late_least_s : 0.0);
}

/* The clocks of ranks are a hundred seconds apart. */
static double clock_of(int rank, double now_s)
{
	return now_s + 100.0 * rank;
}

static void tell(struct run *run, const struct group *group, int member, int call, double came_s, double blocked_s,
                 double left_s)
{
	int rank = group->ranks[member];
	double now_s = 1e-3 * (double)run->now_ms + 0.1 * call;
	struct wlbd_rank_call told = {.rank = rank,
	                              .seq = CALLS * run->step + call + 1,
	                              .bytes = group->bytes,
	                              .entered_s = clock_of(rank, now_s + came_s),
	                              .blocked_s = clock_of(rank, now_s + blocked_s),
	                              .left_s = clock_of(rank, now_s + left_s)};
	snprintf(told.group, sizeof(told.group), "%s", group->name);
	wlbd_detection_take_call(run->detection, &told);
}

/* A call of a collective: all leave it when the last has come and the transfer is over. */
static void run_collective(struct run *run, const struct group *group, int call, double blocked_s[RANKS])
{
	double came_s[RANKS], last_s = 0.0;
	for (int m = 0; m < group->count; m++) {
		came_s[m] = comes_at_s(run, group->ranks[m]);
		last_s = fmax(last_s, came_s[m]);
	}
	double left_s = last_s + transfer_of(run, group);
	for (int m = 0; m < group->count; m++) {
		blocked_s[m] += left_s - came_s[m];
		if (call % 4 == 0)
			tell(run, group, m, call, came_s[m], came_s[m], left_s + 1e-4 * uniform(run));
	}
}

/* A message of a pipeline. The sender waits for every second one at once, and computes beside the others, which then
 * advance late; of some the receiver comes when they have arrived. */
static void run_message(struct run *run, const struct group *group, int call, double blocked_s[RANKS])
{
	double sent_s = comes_at_s(run, group->ranks[0]), awaited_s = comes_at_s(run, group->ranks[1]);
	double took_s = transfer_of(run, group), began_s = fmax(sent_s, awaited_s), asked_s = sent_s;
	double arrived_s = began_s + took_s, gone_s = arrived_s;
	if (call % 2 == 1) {
		asked_s = sent_s + 0.02 + comes_at_s(run, group->ranks[0]);
		gone_s = arrived_s = fmax(began_s, asked_s) + took_s;
	} else if (call % 4 == 2 && awaited_s > sent_s + took_s) { /* it went into the memory of the receiver's node */
		gone_s = sent_s + took_s;
		arrived_s = awaited_s + 1e-4;
	}
	blocked_s[0] += gone_s - asked_s;
	blocked_s[1] += arrived_s - awaited_s;
	tell(run, group, 0, call, sent_s, asked_s, gone_s);
	tell(run, group, 1, call, awaited_s, awaited_s, arrived_s);
}

/* Adds what the rank spent in the calls of a group. */
static void add_transfer(struct wlbd_rank_step *step, const struct group *group, double blocked_s)
{
	struct wlbd_rank_transfer *transfer = &step->transfers[step->transfer_count++];
	snprintf(transfer->group, sizeof(transfer->group), "%s", group->name);
	transfer->transfer = (struct wlb_verdict_transfer){
		.calls = CALLS, .transfer_s = blocked_s, .bytes = (double)(CALLS * group->bytes)};
}

static void run_step(struct run *run)
{
	struct wlbd_rank_step steps[RANKS];
	for (int rank = 0; rank < RANKS; rank++) {
		double computed_s = run->step >= ONSET && rank == run->slow_rank ? 0.4 : 0.2;
		steps[rank] = (struct wlbd_rank_step){.ended = {.rank = rank,
		                                                .step = run->step,
		                                                .seconds = 1.0,
		                                                .computed_s = computed_s * (0.99 + 0.02 * uniform(run)),
		                                                .work = 5}};
	}
	for (int g = 0; g < run->group_count; g++) {
		const struct group *group = &run->groups[g];
		double blocked_s[RANKS] = {0};
		for (int call = 0; call < CALLS; call++)
			(group->is_edge ? run_message : run_collective)(run, group, call, blocked_s);
		for (int m = 0; m < group->count; m++)
			add_transfer(&steps[group->ranks[m]], group, blocked_s[m]);
	}
	for (int rank = 0; rank < RANKS; rank++)
		wlbd_detection_take_step(run->detection, &steps[rank]);
	run->step++;
}

static void report(struct run *run, int rank)
{
	struct wlbd_activity activity = {
		.rank = rank, .step = run->step, .kind = WLB_ACTIVITY_COMPUTING, .for_s = 0.1, .group_count = 0};
	struct wlbd_activity_group groups[WLBD_ACTIVITY_GROUPS_MAX];
	for (int g = 0; g < run->group_count; g++) {
		const struct group *group = &run->groups[g];
		if (!has_rank(group, rank))
			continue;
		struct wlbd_activity_group *told = &groups[activity.group_count++];
		*told = (struct wlbd_activity_group){
			.ranks = group->count, .entered = CALLS * run->step, .left = CALLS * run->step};
		snprintf(told->name, sizeof(told->name), "%s", group->name);
	}
	assert_int_equal(wlbd_activities_keep(&run->activities, &activity, groups, "n", run->now_ms), 0);
}

static void run_second(struct run *run)
{
	const struct wlbd_attempt_ranks ranks = {.layout = &run->layout,
	                                         .count = RANKS,
	                                         .node_of = node_of,
	                                         .nodes = NODES,
	                                         .node_names = node_names,
	                                         .activities = &run->activities};
	for (int rank = 0; rank < RANKS; rank++)
		report(run, rank);
	run->found = wlbd_detection_judge(run->detection, &ranks, &limits, run->now_ms, &run->count);
	run->now_ms += 1000;
	run_step(run);
}

/* Runs to the end, with no verdict before the onset. */
static void run_all(struct run *run)
{
	while (run->step < STEPS) {
		run_second(run);
		if (run->step <= ONSET && run->count > 0)
			fail_msg("step %lld: %s", (long long)run->step, run->found[0].verdict.evidence);
	}
}

static void expect_none(struct run *run)
{
	run_all(run);
	if (run->count > 0)
		fail_msg("%s", run->found[0].verdict.evidence);
	close_run(run);
}

/* Returns the only verdict, of that kind. */
static const struct wlb_verdict *expect_one(struct run *run, enum wlb_verdict_kind kind)
{
	run_all(run);
	for (int i = 0; i < run->count && run->count > 1; i++)
		print_message("%s: %s\n", wlb_verdict_kind_name(run->found[i].verdict.kind),
		              run->found[i].verdict.evidence);
	assert_int_equal(run->count, 1);
	assert_string_equal(wlb_verdict_kind_name(run->found[0].verdict.kind), wlb_verdict_kind_name(kind));
	return &run->found[0].verdict;
}

static void healthy_links_of_unequal_ranks(void **state)
{
	struct run run;
	(void)state;
	open_collectives(&run);
	expect_none(&run);
	open_pipelines(&run);
	expect_none(&run);
}

/* It is late to every call, so that all wait for it, and from the onset on later still. */
static void a_late_rank_is_no_slow_link(void **state)
{
	struct run run;
	(void)state;
	for (int pipelines = 0; pipelines < 2; pipelines++) {
		(pipelines ? open_pipelines : open_collectives)(&run);
		run.late_least_s = 0.05;
		while (run.step < ONSET)
			run_second(&run);
		run.late_least_s = 0.2;
		expect_none(&run);
	}
}

static void a_slow_rank_is_no_slow_link(void **state)
{
	struct run run;
	(void)state;
	for (int pipelines = 0; pipelines < 2; pipelines++)
		for (int rank = 0; rank < RANKS; rank++) {
			(pipelines ? open_pipelines : open_collectives)(&run);
			run.slow_rank = rank;
			assert_int_equal(expect_one(&run, WLB_VERDICT_SLOW_COMPUTE)->ranks[0], rank);
			close_run(&run);
		}
}

static void a_slow_link_of_a_node(void **state)
{
	struct run run;
	(void)state;
	for (int pipelines = 0; pipelines < 2; pipelines++)
		for (int node = 0; node < NODES; node++) {
			(pipelines ? open_pipelines : open_collectives)(&run);
			run.slow_node = node;
			assert_int_equal(expect_one(&run, WLB_VERDICT_SLOW_NIC)->node, node);
			assert_int_equal(run.found[0].verdict.ranks[0], node);
			assert_in_range(run.found[0].verdict.since_step, ONSET - 2, ONSET + 5);
			close_run(&run);
		}
}

/* The only collective between both: its two ranks are named. */
static void a_slow_link_of_a_pair(void **state)
{
	struct run run;
	(void)state;
	open_collectives(&run);
	run.slow_pair[0] = 1;
	run.slow_pair[1] = 3;
	const struct wlb_verdict *verdict = expect_one(&run, WLB_VERDICT_SLOW_LINK);
	assert_int_equal(verdict->rank_count, 2);
	assert_int_equal(verdict->ranks[0], 1);
	assert_int_equal(verdict->ranks[1], 3);
	assert_string_equal(run.found[0].collective, "data");
	close_run(&run);
}

static void how_late_ranks_come(void **state)
{
	struct run run;
	(void)state;
	open_collectives(&run);
	assert_true(isnan(wlbd_detection_late_s(NULL, 0)));
	assert_true(isnan(wlbd_detection_late_s(run.detection, 0)));
	run.late_least_s = 0.5;
	run_all(&run);
	/* By the median of each of its groups: half of it in those of two. */
	assert_in_range(1e3 * wlbd_detection_late_s(run.detection, 1), 200, 520);
	for (int rank = 0; rank < RANKS; rank++)
		assert_true(rank == 1 || wlbd_detection_late_s(run.detection, rank) < 0.05);
	assert_true(isnan(wlbd_detection_late_s(run.detection, RANKS)));
	close_run(&run);
}

static void calls_that_make_no_sense(void **state)
{
	struct run run;
	const struct wlbd_rank_call no_rank = {.rank = RANKS, .group = "tp", .seq = 1};
	const struct wlbd_rank_call no_group = {.rank = 0, .group = "nobody's", .seq = 1};
	struct wlbd_rank_call repeated = {.rank = 0, .group = "tp", .seq = 1, .left_s = 1.0};
	(void)state;
	open_collectives(&run);
	wlbd_detection_take_call(NULL, &no_rank);
	wlbd_detection_take_call(run.detection, &repeated); /* before the ranks are known */
	run_second(&run);
	wlbd_detection_take_call(run.detection, &no_rank);
	wlbd_detection_take_call(run.detection, &no_group);
	for (int i = 0; i < 100; i++) {
		repeated.seq += i % 2; /* none of which the other member tells */
		wlbd_detection_take_call(run.detection, &repeated);
	}
	expect_none(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(healthy_links_of_unequal_ranks), cmocka_unit_test(a_late_rank_is_no_slow_link),
		cmocka_unit_test(a_slow_rank_is_no_slow_link),    cmocka_unit_test(a_slow_link_of_a_node),
		cmocka_unit_test(a_slow_link_of_a_pair),          cmocka_unit_test(how_late_ranks_come),
		cmocka_unit_test(calls_that_make_no_sense),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
