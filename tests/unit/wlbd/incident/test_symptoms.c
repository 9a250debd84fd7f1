/* What becomes of a reporter's connection that closes, without Slurm: the node is alive. */
#include "coordinator/wlbd/incident/symptoms.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "coordinator/wlbd/budget.h"
#include "coordinator/wlbd/wlbd.h"

enum { GRACE_MS = 2000, SILENCE_MS = 10000, REQUEST_MS = 300, CLIENT_PAUSE_MAX_MS = 7000, UID = 1000 };

struct fixture {
	struct wlbd wlbd;
	struct wlbd_connections *connections;
	struct wlbd_attempt *attempt;
	int ends[2];
	struct wlbd_connection *connection;
};

static void ignore(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	(void)context;
}

static void open_connection(struct fixture *f)
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, f->ends), 0);
	f->connection = wlbd_connection_opened(f->connections, f->ends[0]);
	assert_non_null(f->connection);
}

static void close_connection(struct fixture *f)
{
	wlbd_connection_closed(f->connection);
	close(f->ends[0]);
	close(f->ends[1]);
	f->connection = NULL;
}

static int begin(void **state)
{
	const struct wlbd_budget_limits limits = {.user_count = 9, .all_count = 18};
	const struct wlbd_budget_limits attempt_limits = {.user_bytes = 1 << 20, .all_bytes = 2 << 20};
	struct fixture *f = calloc(1, sizeof(*f));
	f->wlbd.base = event_base_new();
	f->wlbd.budget = wlbd_budget_new(&limits);
	f->wlbd.attempt_budget = wlbd_budget_new(&attempt_limits);
	f->wlbd.attempts = wlbd_attempts_new(ignore);
	f->wlbd.config.silence_ms = SILENCE_MS;
	f->connections = wlbd_connections_new(f->wlbd.base, f->wlbd.budget, REQUEST_MS, 9);
	json_t *attempt_json = json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:b, s:i, s:[s]}", "attempt_id", "a",
	                                 "run", "12", "run_pk", 1, "attempt_pk", 1, "attempt", 1, "job_id", 12, "uid",
	                                 UID, "confirmed", 1, "world_size", 2, "nodes", "n1");
	f->attempt = wlbd_attempts_put(&f->wlbd, attempt_json);
	json_decref(attempt_json);
	f->attempt->nodes.allocation_known = true; /* and has no node: none is probed */
	f->attempt->requeue.asked_ms = INT64_MAX;  /* Slurm is not asked for the job */
	open_connection(f);
	*state = f;
	return 0;
}

static int end(void **state)
{
	struct fixture *f = *state;
	if (f->connection != NULL)
		close_connection(f);
	wlbd_attempts_free(f->wlbd.attempts);
	wlbd_connections_free(f->connections);
	wlbd_budget_free(f->wlbd.attempt_budget);
	wlbd_budget_free(f->wlbd.budget);
	event_base_free(f->wlbd.base);
	free(f);
	return 0;
}

/* A reporter that has reported over the connection. */
static struct wlbd_reporter *reporting(struct fixture *f, int rank)
{
	struct wlbd_reporter *reporter = wlbd_attempt_reporter(f->attempt, "n1", rank);
	assert_non_null(reporter);
	wlbd_symptom_alive(reporter, f->connection, wlb_clock_ms());
	return reporter;
}

/* What is found `later_ms` from now. */
static enum wlbd_judgement judge(struct fixture *f, int later_ms, struct wlbd_finding *first)
{
	static struct wlbd_finding findings[WLBD_SYMPTOMS_MAX + WLBD_CONSEQUENCES_MAX];
	int count;
	enum wlbd_judgement judgement =
		wlbd_incident_judge(&f->attempt->incident, wlb_clock_ms() + later_ms, GRACE_MS, findings, &count);
	if (count > 0)
		*first = findings[0];
	return judgement;
}

static void assert_lost(struct fixture *f, int later_ms, enum wlbd_found what)
{
	struct wlbd_finding first;
	assert_int_equal(judge(f, later_ms, &first), WLBD_JUDGE_FAULTS);
	assert_int_equal(first.what, what);
}

static void assert_not_judged(struct fixture *f, int later_ms)
{
	struct wlbd_finding first;
	assert_int_equal(judge(f, later_ms, &first), WLBD_JUDGE_LATER);
}

static void a_launcher_that_reported_just_now_has_the_grace(void **state)
{
	struct fixture *f = *state;
	reporting(f, WLBD_LAUNCHER);
	close_connection(f);
	assert_not_judged(f, GRACE_MS - 100);
	assert_lost(f, GRACE_MS, WLBD_FOUND_LAUNCHER);
}

/* wlbd was stopped for 8 s and sees the end of the connection first. */
static void one_that_was_cut_off_may_pause_first(void **state)
{
	struct fixture *f = *state;
	reporting(f, WLBD_LAUNCHER)->reported_ms -= 8000;
	close_connection(f);
	assert_not_judged(f, CLIENT_PAUSE_MAX_MS);
	assert_lost(f, WLBD_CUT_OFF_GRACE_MS, WLBD_FOUND_LAUNCHER);
}

/* The report that its client had sent without an answer arrives with the end of its connection. */
static void so_may_one_whose_old_report_arrives_late(void **state)
{
	struct fixture *f = *state;
	struct wlbd_reporter *launcher = reporting(f, WLBD_LAUNCHER);
	launcher->reported_ms -= 20000;
	wlbd_symptom_alive(launcher, f->connection, wlb_clock_ms());
	close_connection(f);
	assert_not_judged(f, CLIENT_PAUSE_MAX_MS);
}

static void so_may_one_whose_connection_had_ended_before_its_report_was_read(void **state)
{
	struct fixture *f = *state;
	struct wlbd_reporter *launcher = reporting(f, WLBD_LAUNCHER);
	launcher->reported_ms -= 20000;
	wlbd_symptom_alive(launcher, NULL, wlb_clock_ms());
	assert_not_judged(f, CLIENT_PAUSE_MAX_MS);
}

/* munged was stopped when it arrived: its client has given up waiting for the answer. */
static void so_may_one_whose_report_waited_for_munged(void **state)
{
	struct fixture *f = *state;
	struct wlbd_reporter *launcher = wlbd_attempt_reporter(f->attempt, "n1", WLBD_LAUNCHER);
	wlbd_symptom_alive(launcher, f->connection, wlb_clock_ms() - 1500);
	close_connection(f);
	assert_not_judged(f, CLIENT_PAUSE_MAX_MS);
	assert_lost(f, WLBD_CUT_OFF_GRACE_MS, WLBD_FOUND_LAUNCHER);
}

/* Its client could not reach wlbd before. */
static void so_may_one_after_a_restart_of_wlbd(void **state)
{
	struct fixture *f = *state;
	f->attempt->unreported.due_ms = wlb_clock_ms() + 15000;
	reporting(f, WLBD_LAUNCHER);
	close_connection(f);
	assert_not_judged(f, CLIENT_PAUSE_MAX_MS);
}

static void a_trainers_own_reporter_may_pause_too(void **state)
{
	struct fixture *f = *state;
	reporting(f, 1)->reported_ms -= 8000;
	close_connection(f);
	assert_not_judged(f, CLIENT_PAUSE_MAX_MS);
	assert_lost(f, WLBD_CUT_OFF_GRACE_MS, WLBD_FOUND_RANK);
}

static void a_gap_long_ago_counts_no_more(void **state)
{
	struct fixture *f = *state;
	struct wlbd_reporter *launcher = reporting(f, WLBD_LAUNCHER);
	launcher->reported_ms -= 20000;
	wlbd_symptom_alive(launcher, f->connection, wlb_clock_ms());
	launcher->late_ms -= 20000;
	close_connection(f);
	assert_lost(f, GRACE_MS, WLBD_FOUND_LAUNCHER);
}

static struct wlbd_symptom *only_symptom(struct fixture *f)
{
	assert_int_equal(f->attempt->incident.count, 1);
	return &f->attempt->incident.symptoms[0];
}

/* A rank in a debugger, whose reporter is no agent. */
static void a_process_that_was_silent_for_long_is_not_dead(void **state)
{
	struct fixture *f = *state;
	reporting(f, 1)->reported_ms -= SILENCE_MS + 1000;
	close_connection(f);
	assert_int_equal(only_symptom(f)->kind, WLBD_SILENT);
}

/* Where silence_ms is longer than that. */
static void nor_is_one_whose_connection_wlbd_itself_closes(void **state)
{
	struct fixture *f = *state;
	f->wlbd.config.silence_ms = 10 * SILENCE_MS;
	reporting(f, 1);
	struct timeval limit = {1, 300000}; /* connections are looked at each second */
	event_base_loopexit(f->wlbd.base, &limit);
	event_base_dispatch(f->wlbd.base);
	close_connection(f);
	assert_int_equal(only_symptom(f)->kind, WLBD_SILENT);
}

/* srun waits for the tasks of the node, which is lost, though rank 0 has said that the training failed or is complete.
 */
static void nodes_are_watched_until_the_launcher_reports_the_end(void **state)
{
	struct fixture *f = *state;
	static const int exit_codes[] = {1, 0};
	reporting(f, WLBD_LAUNCHER);
	for (int i = 0; i < 2; i++) {
		f->attempt->incident.life = (struct wlbd_attempt_life){0};
		wlbd_symptom_end_recorded(f->attempt, exit_codes[i]);
		assert_false(wlbd_attempt_has_ended(&f->attempt->incident.life));
		wlbd_symptom_node_silent(f->attempt, "n1");
		only_symptom(f)->node_state = WLBD_NODE_LOST;
		assert_lost(f, WLBD_GATHER_MS, WLBD_FOUND_NODE);
		wlbd_symptom_step_ended(f->attempt, 137, NULL);
		assert_true(wlbd_attempt_has_ended(&f->attempt->incident.life));
		assert_int_equal(f->attempt->incident.life.exit_code, exit_codes[i]);
		wlbd_incident_clear(&f->attempt->incident);
	}
}

/* The ends of ranks after the end that rank 0 recorded are no losses. */
static void ranks_that_end_after_the_record_of_the_end_are_not_lost(void **state)
{
	struct fixture *f = *state;
	struct wlbd_reporter *launcher = wlbd_attempt_reporter(f->attempt, "n2", WLBD_LAUNCHER);
	struct wlbd_reporter *rank = reporting(f, 1);
	launcher->connection = f->connection;
	wlbd_symptom_end_recorded(f->attempt, 1);
	launcher->connection = NULL;
	wlbd_symptom_rank_exited(rank, 1, 1);
	assert_int_equal(f->attempt->incident.count, 0);
	close_connection(f);
	assert_int_equal(only_symptom(f)->kind, WLBD_SILENT);
}

/* The agent's report of the rank that ended the step may arrive after that of the launcher, which does not name it. */
static void the_rank_that_ended_the_step_may_be_reported_after_its_end(void **state)
{
	static const struct {
		int exit_code, srun_signal;
		bool first_exit_known, counts;
	} cases[] = {{7, 0, false, true},  {7, 0, true, false},   {7, 9, false, false},
	             {0, 0, false, false}, {75, 0, false, false}, {-1000, 0, false, false}};
	struct fixture *f = *state;
	struct wlbd_reporter *rank = reporting(f, 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		f->attempt->incident.life = (struct wlbd_attempt_life){0};
		f->attempt->incident.first_exit_known = cases[i].first_exit_known;
		wlbd_symptom_step_ended(f->attempt, cases[i].exit_code,
		                        &(struct wlbd_first_exit){.srun_signal = cases[i].srun_signal});
		wlbd_symptom_rank_exited(rank, 1, 7);
		assert_int_equal(f->attempt->incident.count, cases[i].counts);
		wlbd_incident_clear(&f->attempt->incident);
	}
}

/* A node may be lost after the end of a step that failed, with what is left of it or after its last report. */
static void nodes_of_a_step_that_failed_are_watched_after_its_end(void **state)
{
	struct fixture *f = *state;
	struct wlbd_reporter *reporter = reporting(f, 1);
	wlbd_symptom_step_ended(f->attempt, 1, NULL);
	close_connection(f);
	assert_int_equal(only_symptom(f)->kind, WLBD_SILENT);
	assert_true(only_symptom(f)->after_end);
	wlbd_incident_clear(&f->attempt->incident);
	reporter->goodbye = true;
	wlbd_symptom_node_silent_after_end(f->attempt, "n1");
	assert_true(only_symptom(f)->after_end);
	wlbd_incident_clear(&f->attempt->incident);
	wlbd_symptom_node_silent_after_end(f->attempt, "n3"); /* has never reported */
	reporter->node_is_lost = true;
	wlbd_symptom_node_silent_after_end(f->attempt, "n1"); /* that is recorded */
	assert_int_equal(f->attempt->incident.count, 0);
}

static void without_a_launcher_the_record_of_rank_0_ends_the_attempt(void **state)
{
	struct fixture *f = *state;
	reporting(f, 0);
	wlbd_symptom_end_recorded(f->attempt, 0);
	assert_true(wlbd_attempt_has_ended(&f->attempt->incident.life));
	close_connection(f);
	assert_int_equal(f->attempt->incident.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_launcher_that_reported_just_now_has_the_grace, begin, end),
		cmocka_unit_test_setup_teardown(one_that_was_cut_off_may_pause_first, begin, end),
		cmocka_unit_test_setup_teardown(so_may_one_whose_old_report_arrives_late, begin, end),
		cmocka_unit_test_setup_teardown(so_may_one_whose_connection_had_ended_before_its_report_was_read, begin,
	                                        end),
		cmocka_unit_test_setup_teardown(so_may_one_whose_report_waited_for_munged, begin, end),
		cmocka_unit_test_setup_teardown(so_may_one_after_a_restart_of_wlbd, begin, end),
		cmocka_unit_test_setup_teardown(a_trainers_own_reporter_may_pause_too, begin, end),
		cmocka_unit_test_setup_teardown(a_gap_long_ago_counts_no_more, begin, end),
		cmocka_unit_test_setup_teardown(a_process_that_was_silent_for_long_is_not_dead, begin, end),
		cmocka_unit_test_setup_teardown(nor_is_one_whose_connection_wlbd_itself_closes, begin, end),
		cmocka_unit_test_setup_teardown(nodes_are_watched_until_the_launcher_reports_the_end, begin, end),
		cmocka_unit_test_setup_teardown(nodes_of_a_step_that_failed_are_watched_after_its_end, begin, end),
		cmocka_unit_test_setup_teardown(ranks_that_end_after_the_record_of_the_end_are_not_lost, begin, end),
		cmocka_unit_test_setup_teardown(the_rank_that_ended_the_step_may_be_reported_after_its_end, begin, end),
		cmocka_unit_test_setup_teardown(without_a_launcher_the_record_of_rank_0_ends_the_attempt, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
