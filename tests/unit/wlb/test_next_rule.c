/* What `wlb run` does after each way in which an attempt ends, and with each answer of the coordinator. */
#include "coordinator/wlb/run/rules/next_rule.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/command.h"
#include "common/exit_saved.h"

enum { KILLED = 128 + SIGKILL };

/* A run that is recorded, before its first attempt; the job has no time limit. */
static const struct wlb_next_facts begun = {
	.has_coordinator = true, .max_restarts = 100, .has_input = true, .left_s = INFINITY};

/* Its first attempt has ended so. */
static struct wlb_next_facts ended(int exit_code)
{
	struct wlb_next_facts facts = begun;
	facts.has_attempt = true;
	facts.exit_code = exit_code;
	facts.failures = 1;
	return facts;
}

static struct wlb_next_facts stopped(enum wlb_run_stop why)
{
	struct wlb_next_facts facts = ended(WLB_EXIT_SAVED);
	facts.stopped = true;
	facts.has_saved = true;
	facts.stop = why;
	facts.failures = 0;
	return facts;
}

static struct wlb_next_facts answered(struct wlb_next_facts facts, enum wlb_answer answer)
{
	facts.answer = answer;
	return facts;
}

static void expect_step(struct wlb_next_facts facts, enum wlb_next_step step)
{
	assert_int_equal(wlb_next_decide(&facts).step, step);
}

static void expect_requeue(struct wlb_next_facts facts, enum wlb_next_step step, int exit_code)
{
	struct wlb_next next = wlb_next_decide(&facts);
	assert_int_equal(next.step, step);
	assert_int_equal(next.exit_code, exit_code);
}

static void expect_end(struct wlb_next_facts facts, enum wlb_outcome end, const char *state, int exit_code)
{
	struct wlb_next next = wlb_next_decide(&facts);
	assert_int_equal(next.step, WLB_NEXT_FINISH);
	assert_int_equal(next.end, end);
	assert_string_equal(next.state, state);
	assert_int_equal(next.exit_code, exit_code);
}

static void the_first_attempt_starts_with_any_coordinator(void **state)
{
	struct wlb_next_facts late = begun;
	(void)state;
	expect_step(begun, WLB_NEXT_WAIT);
	expect_step(answered(begun, WLB_ANSWER_WAIT), WLB_NEXT_WAIT);
	expect_step(answered(begun, WLB_ANSWER_START), WLB_NEXT_START);
	expect_step(answered(begun, WLB_ANSWER_UNAVAILABLE), WLB_NEXT_START_ALONE);
	expect_step(answered(begun, WLB_ANSWER_REFUSED), WLB_NEXT_START_ALONE);
	expect_end(answered(begun, WLB_ANSWER_STOP), WLB_OUTCOME_COORDINATOR, "failed", WLB_EXIT_FAILED);
	late.is_late = true; /* a requeue would not change that */
	late.left_s = 1.0;
	expect_step(answered(late, WLB_ANSWER_START), WLB_NEXT_START);
	expect_step(answered(late, WLB_ANSWER_UNAVAILABLE), WLB_NEXT_START_ALONE);
	late.is_not_started = true;
	expect_end(late, WLB_OUTCOME_NOT_STARTED, "failed", WLB_EXIT_FAILED);
}

static void a_command_that_succeeds_ends_the_run(void **state)
{
	struct wlb_next_facts facts = ended(0);
	(void)state;
	expect_end(facts, WLB_OUTCOME_COMPLETE, "complete", 0);
	facts.is_late = true;
	facts.left_s = 1.0;
	facts.max_restarts = 0;
	facts.has_input = false;
	expect_end(facts, WLB_OUTCOME_COMPLETE, "complete", 0);
}

static void a_command_that_fails_is_started_again(void **state)
{
	struct wlb_next_facts facts = ended(KILLED);
	(void)state;
	expect_step(facts, WLB_NEXT_WAIT);
	expect_step(answered(facts, WLB_ANSWER_WAIT), WLB_NEXT_WAIT);
	expect_step(answered(facts, WLB_ANSWER_START), WLB_NEXT_START);
	expect_end(answered(facts, WLB_ANSWER_STOP), WLB_OUTCOME_COORDINATOR, "failed", KILLED);
	expect_end(answered(facts, WLB_ANSWER_UNAVAILABLE), WLB_OUTCOME_UNAVAILABLE, "failed", KILLED);
	expect_end(answered(facts, WLB_ANSWER_REFUSED), WLB_OUTCOME_UNAVAILABLE, "failed", KILLED);
}

static void what_no_next_attempt_helps_ends_the_run(void **state)
{
	struct wlb_next_facts refused = ended(1), restarts = ended(1), input = ended(1);
	(void)state;
	refused.is_refused = true;
	expect_end(refused, WLB_OUTCOME_COMMAND, "failed", 1);
	restarts.max_restarts = 0;
	expect_end(restarts, WLB_OUTCOME_RESTARTS, "failed", 1);
	restarts.max_restarts = 1;
	expect_step(restarts, WLB_NEXT_WAIT);
	input.has_input = false;
	expect_end(input, WLB_OUTCOME_INPUT, "failed", 1);
}

/* An attempt that saved and stopped when it was asked to is no restart. */
static void a_stopped_attempt_does_not_count_as_failed(void **state)
{
	struct wlb_next_facts facts = stopped(WLB_RUN_STOP_GROW);
	(void)state;
	facts.max_restarts = 0;
	expect_step(facts, WLB_NEXT_WAIT);
}

static void an_attempt_that_has_stopped_for_the_jobs_end_is_its_last(void **state)
{
	static const enum wlb_run_stop reasons[] = {WLB_RUN_STOP_LIMIT, WLB_RUN_STOP_PREEMPTED, WLB_RUN_STOP_NONE};
	(void)state;
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		struct wlb_next_facts facts = stopped(reasons[i]);
		expect_requeue(facts, WLB_NEXT_REQUEUE, WLB_EXIT_SAVED);
		facts.exit_code = 0; /* of another trainer */
		expect_requeue(facts, WLB_NEXT_REQUEUE, WLB_EXIT_SAVED);
		facts.requeue_failed = true;
		expect_end(facts, WLB_OUTCOME_NOT_REQUEUED, "cancelled", WLB_EXIT_SAVED);
	}
}

static void near_the_jobs_end_a_failed_attempt_is_its_last(void **state)
{
	struct wlb_next_facts failed = ended(1), has_saved = ended(1), usage = ended(WLB_EXIT_USAGE);
	(void)state;
	failed.is_late = has_saved.is_late = usage.is_late = true;
	failed.left_s = has_saved.left_s = 25.0;
	usage.left_s = 1.0;
	has_saved.has_saved = true;
	expect_step(failed, WLB_NEXT_WAIT);
	expect_requeue(has_saved, WLB_NEXT_REQUEUE, 1);
	expect_requeue(answered(has_saved, WLB_ANSWER_WAIT), WLB_NEXT_REQUEUE, 1);
	expect_step(usage, WLB_NEXT_WAIT); /* it would fail again */
	/* What the coordinator has decided by then counts. */
	expect_end(answered(has_saved, WLB_ANSWER_STOP), WLB_OUTCOME_COORDINATOR, "failed", 1);
	expect_requeue(answered(failed, WLB_ANSWER_START), WLB_NEXT_REQUEUE, 1);
	failed.left_s = 15.0;
	expect_requeue(failed, WLB_NEXT_REQUEUE, 1);
	failed.requeue_failed = true;
	expect_end(failed, WLB_OUTCOME_NOT_REQUEUED, "failed", 1);
}

static void a_run_grows_in_its_job_or_by_a_requeue(void **state)
{
	struct wlb_next_facts facts = stopped(WLB_RUN_STOP_GROW);
	(void)state;
	expect_step(facts, WLB_NEXT_WAIT);
	facts.is_grown_by_job = true;
	expect_requeue(facts, WLB_NEXT_REQUEUE_TO_GROW, WLB_EXIT_SAVED);
	facts.growth_failed = true; /* it goes on with the nodes that it has */
	expect_step(facts, WLB_NEXT_WAIT);
	facts.is_late = true;
	expect_requeue(facts, WLB_NEXT_REQUEUE, WLB_EXIT_SAVED);
	/* One that has failed meanwhile has lost its reason to grow. */
	facts = ended(1);
	facts.stop = WLB_RUN_STOP_GROW;
	facts.is_grown_by_job = true;
	expect_step(facts, WLB_NEXT_WAIT);
}

static void without_a_coordinator_a_fault_ends_the_run(void **state)
{
	struct wlb_next_facts failed = ended(1), grown = stopped(WLB_RUN_STOP_GROW);
	(void)state;
	failed.has_coordinator = grown.has_coordinator = false;
	expect_end(answered(failed, WLB_ANSWER_UNAVAILABLE), WLB_OUTCOME_UNAVAILABLE, "failed", 1);
	expect_step(answered(grown, WLB_ANSWER_UNAVAILABLE), WLB_NEXT_START_ALONE);
	grown.is_late = true;
	expect_requeue(answered(grown, WLB_ANSWER_UNAVAILABLE), WLB_NEXT_REQUEUE, WLB_EXIT_SAVED);
	grown.has_coordinator = true; /* its nodes are not known here */
	expect_end(answered(grown, WLB_ANSWER_UNAVAILABLE), WLB_OUTCOME_UNAVAILABLE, "failed", WLB_EXIT_SAVED);
}

static void a_run_that_is_cancelled_ends_whatever_the_answer(void **state)
{
	struct wlb_next_facts facts = ended(KILLED), first = begun;
	(void)state;
	facts.is_cancelled = first.is_cancelled = true;
	expect_end(facts, WLB_OUTCOME_CANCELLED, "cancelled", KILLED);
	for (int answer = WLB_ANSWER_WAIT; answer <= WLB_ANSWER_REFUSED; answer++) {
		expect_end(answered(facts, answer), WLB_OUTCOME_CANCELLED, "cancelled", 128 + SIGTERM);
		expect_end(answered(first, answer), WLB_OUTCOME_CANCELLED, "cancelled", 128 + SIGTERM);
	}
	facts.exit_code = 0;
	expect_end(facts, WLB_OUTCOME_CANCELLED, "cancelled", 128 + SIGTERM);
}

static void a_run_that_is_abandoned_reports_nothing(void **state)
{
	struct wlb_next_facts facts = ended(0);
	(void)state;
	facts.is_abandoned = facts.is_cancelled = facts.requeue_failed = true;
	expect_requeue(facts, WLB_NEXT_LEAVE, WLB_EXIT_FAILED);
	expect_requeue(answered(facts, WLB_ANSWER_START), WLB_NEXT_LEAVE, WLB_EXIT_FAILED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_attempt_starts_with_any_coordinator),
		cmocka_unit_test(a_command_that_succeeds_ends_the_run),
		cmocka_unit_test(a_command_that_fails_is_started_again),
		cmocka_unit_test(what_no_next_attempt_helps_ends_the_run),
		cmocka_unit_test(a_stopped_attempt_does_not_count_as_failed),
		cmocka_unit_test(an_attempt_that_has_stopped_for_the_jobs_end_is_its_last),
		cmocka_unit_test(near_the_jobs_end_a_failed_attempt_is_its_last),
		cmocka_unit_test(a_run_grows_in_its_job_or_by_a_requeue),
		cmocka_unit_test(without_a_coordinator_a_fault_ends_the_run),
		cmocka_unit_test(a_run_that_is_cancelled_ends_whatever_the_answer),
		cmocka_unit_test(a_run_that_is_abandoned_reports_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
