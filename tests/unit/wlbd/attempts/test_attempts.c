#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/rank_trace.h"
#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlbd/budget.h"
#include "coordinator/wlbd/detection/detection.h"
#include "coordinator/wlbd/incident/attempt_end.h"
#include "coordinator/wlbd/verdicts/detect.h"
#include "coordinator/wlbd/wlbd.h"

static void ignore(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	(void)context;
}

enum { UID = 1000, LIMIT_BYTES = 1 << 16, ACTIVITY_BYTES = 1 << 20 };

static int begin(void **state)
{
	const struct wlbd_budget_limits limits = {.user_bytes = LIMIT_BYTES, .all_bytes = 2 * LIMIT_BYTES};
	const struct wlbd_budget_limits activity_limits = {.user_bytes = ACTIVITY_BYTES,
	                                                   .all_bytes = 2 * ACTIVITY_BYTES};
	struct wlbd *wlbd = calloc(1, sizeof(*wlbd));
	wlbd->base = event_base_new();
	wlbd->attempts = wlbd_attempts_new(ignore);
	wlbd->attempt_budget = wlbd_budget_new(&limits);
	wlbd->activity_budget = wlbd_budget_new(&activity_limits);
	wlb_on_fault_init(&wlbd->config.on_fault);
	wlbd->config.on_fault.slow_by_percent = 25;
	*state = wlbd;
	return 0;
}

static int end(void **state)
{
	struct wlbd *wlbd = *state;
	wlbd_attempts_free(wlbd->attempts);
	assert_int_equal(wlbd_budget_take(wlbd->attempt_budget, UID, LIMIT_BYTES), WLBD_BUDGET_TAKEN); /* all is back */
	wlbd_budget_free(wlbd->attempt_budget);
	wlbd_budget_free(wlbd->activity_budget);
	event_base_free(wlbd->base);
	free(wlbd);
	return 0;
}

/* The attempt of a JSON, of run `run_pk`; on_fault NULL: the run's user said nothing. */
static struct wlbd_attempt *put(struct wlbd *wlbd, const char *uuid, int run_pk, const char *on_fault)
{
	json_t *attempt_json =
		json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:b, s:i, s:[s], s:s?}", "attempt_id", uuid, "run", "12",
	                  "run_pk", run_pk, "attempt_pk", 1, "attempt", 1, "job_id", 12, "uid", 1000, "confirmed", 1,
	                  "world_size", 2, "nodes", "n1", "on_fault", on_fault);
	struct wlbd_attempt *attempt = wlbd_attempts_put(wlbd, attempt_json);
	json_decref(attempt_json);
	assert_non_null(attempt);
	return attempt;
}

static void what_is_done_about_faults_is_that_of_the_run_over_that_of_the_cluster(void **state)
{
	struct wlbd *wlbd = *state;
	const struct wlbd_attempt *plain = put(wlbd, "a", 1, NULL);
	const struct wlbd_attempt *own = put(wlbd, "b", 2, "hang=report,hang-after=60");
	assert_int_equal(plain->policy.on_fault.hang, WLB_FAULT_EVICT);
	assert_true(plain->policy.on_fault.slow_by_percent == 25);
	assert_int_equal(own->policy.on_fault.hang, WLB_FAULT_REPORT);
	assert_true(own->policy.on_fault.hang_after_s == 60 && own->policy.on_fault.slow_by_percent == 25);
}

static void a_setting_changes_all_attempts_of_its_run(void **state)
{
	struct wlbd *wlbd = *state;
	const struct wlbd_attempt *first = put(wlbd, "a", 1, "hang=report");
	const struct wlbd_attempt *second = put(wlbd, "b", 1, "hang=report");
	const struct wlbd_attempt *other = put(wlbd, "c", 2, "hang=report");
	wlbd_attempts_set_on_fault(wlbd, 1, "hang=evict,slow=evict");
	assert_int_equal(first->policy.on_fault.hang, WLB_FAULT_EVICT);
	assert_int_equal(second->policy.on_fault.slow, WLB_FAULT_EVICT);
	assert_int_equal(other->policy.on_fault.hang, WLB_FAULT_REPORT);
}

static void a_text_that_cannot_be_read_leaves_the_defaults_of_the_cluster(void **state)
{
	struct wlbd *wlbd = *state;
	const struct wlbd_attempt *attempt = put(wlbd, "a", 1, "hang=report,of-a-later-release=7");
	assert_int_equal(attempt->policy.on_fault.hang, WLB_FAULT_EVICT);
	assert_true(attempt->policy.on_fault.slow_by_percent == 25);
}

/* Gives the attempt the nodes of its ranks as the database has them. */
static void put_ranks(struct wlbd *wlbd, const char *uuid, int world_size, json_t *rank_nodes)
{
	json_t *attempt_json = json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:b, s:i, s:o}", "attempt_id", uuid,
	                                 "run", "12", "run_pk", 1, "attempt_pk", 1, "attempt", 1, "job_id", 12, "uid",
	                                 1000, "confirmed", 1, "world_size", world_size, "rank_nodes", rank_nodes);
	assert_non_null(wlbd_attempts_put(wlbd, attempt_json));
	json_decref(attempt_json);
}

static void a_map_of_more_nodes_than_the_job_has_leaves_the_ranks_as_they_were(void **state)
{
	static struct wlb_slurm_job job = {.running = true, .uid = 1000, .nodes = "n1"};
	struct wlbd *wlbd = *state;
	const struct wlbd_attempt *attempt = put(wlbd, "a", 1, NULL);
	wlbd_attempts_confirm(wlbd, 1, &job);
	put_ranks(wlbd, "a", 1, json_pack("[s]", "n1"));
	put_ranks(wlbd, "a", 60000, json_pack("[s,s]", "x", "y"));
	assert_int_equal(attempt->nodes.world_size, 1);
	assert_int_equal(attempt->nodes.mapped_ranks, 1);
	assert_true(wlbd_attempt_nodes_may_run(&attempt->nodes, "n1", 0));
	assert_false(wlbd_attempt_nodes_may_run(&attempt->nodes, "n1", 50000));
	assert_string_equal(wlbd_attempt_nodes_of_rank(&attempt->nodes, 0), "n1");
	assert_null(wlbd_attempt_nodes_of_rank(&attempt->nodes, 1));
	assert_null(wlbd_attempt_nodes_of_rank(&attempt->nodes, 50000));
}

/* Returns the names of the nodes of that many ranks, two on each. */
static json_t *two_on_each(int ranks)
{
	json_t *names = json_array();
	for (int i = 0; i < ranks; i++)
		json_array_append_new(names, json_sprintf("n%d", i / 2));
	return names;
}

static void nodes_and_ranks_are_charged_to_the_user(void **state)
{
	struct wlbd *wlbd = *state;
	const struct wlbd_attempt *attempt = put(wlbd, "a", 1, NULL);
	put_ranks(wlbd, "a", 1000, two_on_each(1000));
	assert_int_equal(attempt->nodes.mapped_ranks, 1000);
	assert_true(attempt->nodes.charged_bytes > 1000 * sizeof(int) + 500 * sizeof(char *));
	assert_true(malloc_usable_size(attempt->nodes.started_on.list) < 600 * sizeof(char *));
	put_ranks(wlbd, "a", 8000, two_on_each(8000)); /* more than the user may hold */
	assert_int_equal(attempt->nodes.mapped_ranks, 1000);
	put_ranks(wlbd, "a", 2, two_on_each(2));
	assert_int_equal(attempt->nodes.mapped_ranks, 2);
	assert_true(attempt->nodes.charged_bytes < 100);
}

static void reporters_are_charged_to_the_user(void **state)
{
	struct wlbd *wlbd = *state;
	char node[16];
	int count = 0;
	struct wlbd_attempt *attempt = put(wlbd, "a", 1, NULL);
	json_t *none = json_array();
	assert_int_equal(wlbd_attempt_nodes_set(&attempt->nodes, none, 0), 0); /* any node may report */
	json_decref(none);
	do
		snprintf(node, sizeof(node), "n%d", count++);
	while (wlbd_attempt_reporter(attempt, node, 0) != NULL);
	assert_in_range(count, 2, LIMIT_BYTES / sizeof(struct wlbd_reporter) + 1);
	assert_int_equal(attempt->reporters.count, count - 1);
	assert_non_null(wlbd_attempt_reporter(attempt, "n0", 0)); /* that is there already */
	json_t *map = two_on_each(2000);
	assert_int_equal(wlbd_attempt_nodes_set_ranks(&attempt->nodes, map), -1);
	json_decref(map);
	assert_int_equal(attempt->nodes.world_size, 0);
}

/* Adds an attempt of run 1. */
static const struct wlbd_attempt *add_number(struct wlbd *wlbd, int number)
{
	char uuid[16];
	snprintf(uuid, sizeof(uuid), "run-1-%d", number);
	json_t *attempt_json = json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:b, s:i, s:[s]}", "attempt_id", uuid,
	                                 "run", "12", "run_pk", 1, "attempt_pk", number, "attempt", number, "job_id",
	                                 12, "uid", UID, "confirmed", 1, "world_size", 2, "nodes", "n1");
	struct wlbd_attempt *attempt = wlbd_attempts_put(wlbd, attempt_json);
	json_decref(attempt_json);
	assert_non_null(attempt);
	assert_non_null(wlbd_attempt_reporter(attempt, "n1", 0));
	wlbd_attempt_end_older(wlbd, attempt);
	return attempt;
}

static void the_newest_attempts_of_a_run_are_kept(void **state)
{
	struct wlbd *wlbd = *state;
	const struct wlbd_attempt *other = put(wlbd, "other", 2, NULL);
	for (int number = 1; number <= WLBD_RUN_ATTEMPTS_MAX + 6; number++)
		add_number(wlbd, number);
	assert_int_equal(wlbd->attempts->count, 1 + WLBD_RUN_ATTEMPTS_MAX);
	assert_null(wlbd_attempts_find(wlbd->attempts, "run-1-6"));
	assert_false(wlbd_attempt_has_ended(&wlbd_attempts_find(wlbd->attempts, "run-1-7")->incident.life));
	assert_ptr_equal(wlbd_attempts_find(wlbd->attempts, "other"), other);
	/* A record of an old one arrives late: it is there until the next is added. */
	const struct wlbd_attempt *late = add_number(wlbd, 3);
	assert_ptr_equal(wlbd_attempts_find(wlbd->attempts, "run-1-3"), late);
	assert_int_equal(wlbd->attempts->count, 2 + WLBD_RUN_ATTEMPTS_MAX);
	add_number(wlbd, 2);
	assert_null(wlbd_attempts_find(wlbd->attempts, "run-1-3"));
	assert_int_equal(wlbd->attempts->count, 2 + WLBD_RUN_ATTEMPTS_MAX);
}

static void ranks_are_watched_from_the_next_tick_on_where_this_one_has_taken_long(void **state)
{
	struct wlbd *wlbd = *state;
	const struct wlbd_activity busy = {.rank = 0, .step = 1, .kind = WLB_ACTIVITY_COMPUTING};
	struct wlbd_attempt *attempt = put(wlbd, "a", 1, NULL);
	put_ranks(wlbd, "a", 1, json_pack("[s]", "n1"));
	attempt->layout = (struct wlb_layout){1, 1, 1, 1};
	attempt->past_steps.is_asked = attempt->excluded.is_asked = true; /* there is no database */
	assert_int_equal(wlbd_activities_keep(&attempt->activities, &busy, NULL, "n1", 1000), 0);
	wlbd->attempts->making_ms = 1000;
	wlbd_detect(attempt, 1000);
	assert_non_null(attempt->watch.detection);
	assert_false(wlbd_detection_watches(attempt->watch.detection));
	wlbd->attempts->making_ms = 0;
	wlbd_detect(attempt, 2000);
	assert_true(wlbd_detection_watches(attempt->watch.detection));
	wlbd->attempts->making_ms = 1000;
	wlbd_detect(attempt, 3000);
	assert_true(wlbd_detection_watches(attempt->watch.detection));
}

static void ranks_are_recorded_on_nodes_of_the_job_or_of_the_attempt(void **state)
{
	static struct wlb_slurm_job job = {.running = true, .uid = 1000, .nodes = "n[1-2]"};
	struct wlbd *wlbd = *state;
	const struct wlbd_attempt *attempt = put(wlbd, "a", 1, NULL);
	put_ranks(wlbd, "a", 1, json_pack("[s]", "n3")); /* Slurm has taken it from the job since then */
	assert_true(wlbd_attempt_nodes_may_record(&attempt->nodes, "n9"));
	wlbd_attempts_confirm(wlbd, 1, &job);
	assert_true(wlbd_attempt_nodes_may_record(&attempt->nodes, "n1"));
	assert_true(wlbd_attempt_nodes_may_record(&attempt->nodes, "n3"));
	assert_false(wlbd_attempt_nodes_may_record(&attempt->nodes, "n9"));
}

static void connect_reporter(struct wlbd_attempt *attempt, bool is_connected)
{
	static char connection; /* only whether there is one is looked at */
	struct wlbd_reporter *reporter = wlbd_attempt_reporter(attempt, "n1", 0);
	assert_non_null(reporter);
	reporter->connection = is_connected ? (struct wlbd_connection *)&connection : NULL;
}

/* Also where its processes begin new attempts meanwhile. */
static void a_run_whose_job_is_over_is_not_reported_for_ever(void **state)
{
	static struct wlb_slurm_job ended = {.finished = true, .uid = UID, .nodes = ""};
	static struct wlb_slurm_job running = {.running = true, .uid = UID, .nodes = "n1"};
	struct wlbd *wlbd = *state;
	struct wlbd_attempt *attempt = put(wlbd, "a", 1, NULL);
	assert_false(wlbd_attempts_run_reports(wlbd->attempts, 1, 0));
	connect_reporter(attempt, true);
	assert_true(wlbd_attempts_run_reports(wlbd->attempts, 1, INT64_MAX));
	wlbd_attempts_confirm(wlbd, 1, &ended);
	int64_t over_ms = attempt->job.over_ms;
	assert_true(over_ms > 0);
	attempt->job.over_ms = --over_ms;
	wlbd_attempts_job_unknown(wlbd, 1);
	assert_true(attempt->job.over_ms == over_ms);
	assert_true(wlbd_attempts_run_reports(wlbd->attempts, 1, over_ms + WLBD_LAST_REPORTS_MS - 1));
	connect_reporter(attempt, false);
	struct wlbd_attempt *next = put(wlbd, "b", 1, NULL);
	connect_reporter(next, true);
	assert_true(wlbd_attempts_run_reports(wlbd->attempts, 1, over_ms + WLBD_LAST_REPORTS_MS - 1));
	assert_false(wlbd_attempts_run_reports(wlbd->attempts, 1, over_ms + WLBD_LAST_REPORTS_MS));
	wlbd_attempts_confirm(wlbd, 1, &running);
	assert_true(wlbd_attempts_run_reports(wlbd->attempts, 1, over_ms + WLBD_LAST_REPORTS_MS));
	connect_reporter(next, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_done_about_faults_is_that_of_the_run_over_that_of_the_cluster,
	                                        begin, end),
		cmocka_unit_test_setup_teardown(a_setting_changes_all_attempts_of_its_run, begin, end),
		cmocka_unit_test_setup_teardown(a_text_that_cannot_be_read_leaves_the_defaults_of_the_cluster, begin,
	                                        end),
		cmocka_unit_test_setup_teardown(a_map_of_more_nodes_than_the_job_has_leaves_the_ranks_as_they_were,
	                                        begin, end),
		cmocka_unit_test_setup_teardown(nodes_and_ranks_are_charged_to_the_user, begin, end),
		cmocka_unit_test_setup_teardown(reporters_are_charged_to_the_user, begin, end),
		cmocka_unit_test_setup_teardown(the_newest_attempts_of_a_run_are_kept, begin, end),
		cmocka_unit_test_setup_teardown(ranks_are_watched_from_the_next_tick_on_where_this_one_has_taken_long,
	                                        begin, end),
		cmocka_unit_test_setup_teardown(ranks_are_recorded_on_nodes_of_the_job_or_of_the_attempt, begin, end),
		cmocka_unit_test_setup_teardown(a_run_whose_job_is_over_is_not_reported_for_ever, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
