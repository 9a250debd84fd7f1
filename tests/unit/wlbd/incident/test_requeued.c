/* Attempts whose job Slurm says is requeued; the database is unavailable. */
#include "coordinator/wlbd/incident/requeued.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/clock.h"
#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlbd/attempts/attempts.h"
#include "coordinator/wlbd/budget.h"
#include "coordinator/wlbd/database/outbox.h"
#include "coordinator/wlbd/wlbd.h"

enum { RUN = 7, JOB = 12, UID = 1000 };

struct fixture {
	struct wlbd wlbd;
	struct wlbd_db_server *server;
	struct wlbd_db *db;
	struct wlbd_attempt *attempt;
	uint64_t dropped;
};

static void ignore(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	(void)context;
}

static int begin(void **state)
{
	static const struct wlbd_db_hooks none;
	const struct wlbd_budget_limits limits = {.user_bytes = 1 << 20, .all_bytes = 2 << 20};
	struct fixture *f = calloc(1, sizeof(*f));
	f->wlbd.base = event_base_new();
	f->wlbd.attempt_budget = wlbd_budget_new(&limits);
	f->wlbd.attempts = wlbd_attempts_new(ignore);
	f->server = wlbd_db_server_new(f->wlbd.base, "host=/nowhere dbname=none", NULL);
	f->db = wlbd_db_new(f->wlbd.base, f->server, 1000, &none, NULL);
	f->wlbd.outbox = wlbd_outbox_new(f->wlbd.base, f->db, &f->dropped);
	json_t *attempt_json = json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:b, s:i, s:[s, s]}", "attempt_id", "a",
	                                 "run", "12", "run_pk", RUN, "attempt_pk", 1, "attempt", 1, "job_id", JOB,
	                                 "uid", UID, "confirmed", 1, "world_size", 2, "nodes", "n1", "n2");
	f->attempt = wlbd_attempts_put(&f->wlbd, attempt_json);
	json_decref(attempt_json);
	assert_non_null(f->attempt);
	*state = f;
	return 0;
}

static int end(void **state)
{
	struct fixture *f = *state;
	wlbd_attempts_free(f->wlbd.attempts);
	wlbd_outbox_free(f->wlbd.outbox);
	wlbd_db_free(f->db);
	wlbd_db_server_free(f->server);
	wlbd_budget_free(f->wlbd.attempt_budget);
	event_base_free(f->wlbd.base);
	free(f);
	return 0;
}

/* A poll of Slurm that began now: what it said of the job. */
static void note(struct fixture *f, const char *job_state, uid_t uid, int64_t asked_ms)
{
	struct wlb_slurm_job job = {.job_id = JOB, .uid = uid, .restart_count = 1};
	snprintf(job.state, sizeof(job.state), "%s", job_state);
	wlbd_requeued_note(&f->wlbd, RUN, &job, asked_ms);
}

/* A reporter of n1 that has no connection any more. */
static struct wlbd_reporter *gone(struct fixture *f, int rank, bool is_agent)
{
	struct wlbd_reporter *reporter = wlbd_attempt_reporter(f->attempt, "n1", rank);
	assert_non_null(reporter);
	reporter->agent = is_agent;
	return reporter;
}

static void the_attempt_ends_without_a_fault(void **state)
{
	struct fixture *f = *state;
	note(f, "PENDING", UID, wlb_clock_ms());
	assert_int_not_equal(f->attempt->requeue.noted_ms, 0);
	assert_true(f->attempt->incident.settled);
	assert_true(wlbd_outbox_holds(f->wlbd.outbox, RUN));
}

static void a_job_that_runs_or_is_of_another_user_was_not_queued_again(void **state)
{
	struct fixture *f = *state;
	note(f, "RUNNING", UID, wlb_clock_ms());
	note(f, "PENDING", UID + 1, wlb_clock_ms());
	assert_int_equal(f->attempt->requeue.noted_ms, 0);
	assert_false(f->attempt->incident.settled);
}

/* Slurm was asked before the job started again, and answers later. */
static void an_attempt_that_began_after_the_question_goes_on(void **state)
{
	struct fixture *f = *state;
	note(f, "PENDING", UID, f->attempt->made_ms - 1);
	assert_int_equal(f->attempt->requeue.noted_ms, 0);
}

/* Slurm requeues the job because of that. */
static void the_loss_of_the_launchers_node_is_still_found(void **state)
{
	struct fixture *f = *state;
	gone(f, WLBD_LAUNCHER, false);
	gone(f, 0, true);
	note(f, "PENDING", UID, wlb_clock_ms());
	assert_int_not_equal(f->attempt->requeue.noted_ms, 0);
	assert_false(f->attempt->incident.settled);
}

static void a_node_whose_agent_said_goodbye_is_not_gone(void **state)
{
	struct fixture *f = *state;
	gone(f, WLBD_LAUNCHER, false);
	gone(f, 0, true)->goodbye = true;
	note(f, "PENDING", UID, wlb_clock_ms());
	assert_true(f->attempt->incident.settled);
}

static void nor_is_that_of_a_launcher_that_said_goodbye(void **state)
{
	struct fixture *f = *state;
	gone(f, WLBD_LAUNCHER, false)->goodbye = true;
	gone(f, 0, true);
	note(f, "PENDING", UID, wlb_clock_ms());
	assert_true(f->attempt->incident.settled);
}

/* Its run may wait for the job for days. */
static void it_leaves_the_memory_a_minute_later(void **state)
{
	struct fixture *f = *state;
	const struct wlbd_attempt_life *life = &f->attempt->incident.life;
	const int64_t now_ms = wlb_clock_ms();
	wlbd_requeued_end(f->attempt, now_ms + 2 * WLBD_ENDED_KEPT_MS);
	assert_false(wlbd_attempt_has_ended(life));
	f->attempt->requeue.noted_ms = now_ms;
	wlbd_requeued_end(f->attempt, now_ms + WLBD_ENDED_KEPT_MS);
	assert_false(wlbd_attempt_has_ended(life));
	wlbd_requeued_end(f->attempt, now_ms + WLBD_ENDED_KEPT_MS + 1);
	assert_true(wlbd_attempt_has_ended(life));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_attempt_ends_without_a_fault, begin, end),
		cmocka_unit_test_setup_teardown(a_job_that_runs_or_is_of_another_user_was_not_queued_again, begin, end),
		cmocka_unit_test_setup_teardown(an_attempt_that_began_after_the_question_goes_on, begin, end),
		cmocka_unit_test_setup_teardown(the_loss_of_the_launchers_node_is_still_found, begin, end),
		cmocka_unit_test_setup_teardown(a_node_whose_agent_said_goodbye_is_not_gone, begin, end),
		cmocka_unit_test_setup_teardown(nor_is_that_of_a_launcher_that_said_goodbye, begin, end),
		cmocka_unit_test_setup_teardown(it_leaves_the_memory_a_minute_later, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
