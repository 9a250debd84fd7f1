/* The reply that lists the ranks of a run. */
#include "coordinator/wlbd/api/runs/ranks_reply.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/wlbd/budget.h"

enum { MUCH = 1 << 30 };

static struct wlbd_activities open_activities(void)
{
	const struct wlbd_budget_limits limits = {.user_bytes = MUCH, .all_bytes = 2 * (size_t)MUCH};
	return (struct wlbd_activities){.budget = wlbd_budget_new(&limits)};
}

static void close_activities(struct wlbd_activities *activities)
{
	wlbd_activities_free(activities);
	wlbd_budget_free(activities->budget);
}

/* The parsed reply, which must be JSON. */
static json_t *reply_of(const char *facts, const struct wlbd_attempt_nodes *nodes,
                        const struct wlbd_activities *activities, const struct wlbd_rank_processes *processes)
{
	json_t *parsed = json_loads(facts, 0, NULL);
	const struct wlbd_known_ranks known = {
		.nodes = nodes, .activities = activities, .processes = processes, .now_ms = 1412};
	char *text = wlbd_ranks_reply(facts, parsed, &known);
	assert_non_null(text);
	json_t *reply = json_loads(text, 0, NULL);
	assert_non_null(reply);
	free(text);
	json_decref(parsed);
	return reply;
}

static void expect_ranks(const json_t *reply, const char *text)
{
	char *ranks = json_dumps(json_object_get(reply, "ranks"), JSON_COMPACT);
	assert_string_equal(ranks, text);
	free(ranks);
}

#define FACTS "{\"state\":\"running\",\"nodes\":[\"n2\",\"n1\"],\"world_size\":4}"

static void test_rows(void **state)
{
	static const struct wlbd_activity_group groups[] = {{"tp", 2, 1234, 1233}, {"dp", 2, 96, 96}};
	struct wlbd_activities activities = open_activities();
	struct wlbd_attempt_nodes nodes = {.world_size = 4};
	struct wlbd_activity activity = {.rank = 0,
	                                 .step = 41,
	                                 .kind = 2,
	                                 .for_s = 0.4124,
	                                 .is_in_call = true,
	                                 .call = {3, 0, 1234, 65536, 0.2},
	                                 .group_count = 2};
	(void)state;
	json_t *names = json_pack("[s,s,s,s]", "n2", "n2", "n1", "n9"); /* n9 is not one of the reply's */
	assert_int_equal(wlbd_attempt_nodes_set_ranks(&nodes, names), 0);
	json_decref(names);
	assert_int_equal(wlbd_activities_keep(&activities, &activity, groups, "n2", 1000), 0);
	activity = (struct wlbd_activity){.rank = 4, .process = WLBD_PROCESS_GONE}; /* above the size that is known */
	assert_int_equal(wlbd_activities_keep(&activities, &activity, groups, "n1", 1500), 0);
	json_t *reply = reply_of(FACTS, &nodes, &activities, NULL);
	assert_string_equal(json_string_value(json_object_get(reply, "state")), "running");
	expect_ranks(reply, "[[0,0,412,41,\"computing\",412,\"running\",[\"all_gather\",0,1234,65536,200],"
	                    "[[\"tp\",2,1234,1233],[\"dp\",2,96,96]],null],[1,0],[2,1],[3,null],"
	                    "[4,1,0,0,\"starting\",0,\"gone\",null,[],null]]");
	assert_int_equal(json_integer_value(json_object_get(reply, "left_out")), 0);
	json_decref(reply);
	wlbd_attempt_nodes_free(&nodes);
	close_activities(&activities);
}

/* torchrun has two tasks of Slurm, and starts four ranks. */
static void test_a_trainer_that_reports_nothing(void **state)
{
	struct wlbd_rank_process list[] = {{"n2", 1000, WLBD_PROCESS_RUNNING}, {0}, {"n1", 1400, WLBD_PROCESS_STOPPED}};
	const struct wlbd_rank_processes processes = {list, 3};
	(void)state;
	json_t *reply = reply_of("{\"nodes\":[\"n2\",\"n1\"],\"world_size\":2}", NULL, NULL, &processes);
	expect_ranks(reply, "[[0,0,412,null,\"running\",null,\"running\",null,[],null],[1,null],"
	                    "[2,1,12,null,\"running\",null,\"stopped\",null,[],null]]");
	json_decref(reply);
}

static void test_an_attempt_that_is_not_in_memory(void **state)
{
	(void)state;
	json_t *reply = reply_of(FACTS, NULL, NULL, NULL);
	expect_ranks(reply, "[[0,null],[1,null],[2,null],[3,null]]");
	json_decref(reply);
	reply = reply_of("{\"nodes\":[],\"world_size\":null}", NULL, NULL, NULL); /* no attempt yet */
	expect_ranks(reply, "[]");
	json_decref(reply);
}

static void test_rows_are_bounded(void **state)
{
	(void)state;
	json_t *reply = reply_of("{\"nodes\":[],\"world_size\":1000000}", NULL, NULL, NULL);
	assert_int_equal(json_array_size(json_object_get(reply, "ranks")), WLBD_ACTIVITY_RANKS_MAX);
	assert_int_equal(json_integer_value(json_object_get(reply, "left_out")), 1000000 - WLBD_ACTIVITY_RANKS_MAX);
	json_decref(reply);
}

/* Returns how long the reply is with that many ranks of groups with long names and numbers. */
static size_t length_of(int ranks, int group_count, int64_t seq, int *left_out)
{
	struct wlbd_activities activities = open_activities();
	struct wlbd_activity_group groups[WLBD_ACTIVITY_GROUPS_MAX];
	for (int i = 0; i < group_count; i++)
		groups[i] = (struct wlbd_activity_group){"pp_back.100-101", 1024, seq, seq};
	for (int rank = 0; rank < ranks; rank++) {
		struct wlbd_activity activity = {.rank = rank, .step = 100000, .group_count = group_count};
		assert_int_equal(wlbd_activities_keep(&activities, &activity, groups, "n1", 0), 0);
	}
	json_t *facts = json_pack("{s:[s], s:i}", "nodes", "n1", "world_size", ranks);
	const struct wlbd_known_ranks known = {.activities = &activities};
	char *text = wlbd_ranks_reply("{\"nodes\":[\"n1\"]}", facts, &known);
	const char *end = strstr(text, "\"left_out\":");
	*left_out = atoi(end + strlen("\"left_out\":"));
	size_t length = strlen(text);
	free(text);
	json_decref(facts);
	close_activities(&activities);
	return length;
}

static void test_bytes_are_bounded(void **state)
{
	int left_out;
	(void)state;
	size_t length = length_of(16384, 8, 10000000, &left_out);
	assert_int_equal(left_out, 0);
	assert_true(length < WLBD_RANKS_REPLY_MAX_BYTES);
	length = length_of(WLBD_ACTIVITY_RANKS_MAX, WLBD_ACTIVITY_GROUPS_MAX, INT64_C(1000000000000000), &left_out);
	assert_in_range(left_out, 1, WLBD_ACTIVITY_RANKS_MAX - 1);
	assert_in_range(length, WLBD_RANKS_REPLY_MAX_BYTES, WLBD_RANKS_REPLY_MAX_BYTES + 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_a_trainer_that_reports_nothing),
		cmocka_unit_test(test_an_attempt_that_is_not_in_memory),
		cmocka_unit_test(test_rows_are_bounded),
		cmocka_unit_test(test_bytes_are_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
