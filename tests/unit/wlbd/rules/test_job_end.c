#include "coordinator/wlbd/rules/job_end.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct wlb_slurm_job job;

/* An attempt of `wlb run` that was open when its job ended a minute ago, wlbd and its database being there. */
static struct wlbd_job_end_facts facts_of(const char *state)
{
	memset(&job, 0, sizeof(job));
	job.job_id = 12;
	strcpy(job.state, state);
	return (struct wlbd_job_end_facts){.job = &job,
	                                   .job_id = 12,
	                                   .ended_ago_s = 60,
	                                   .recording_s = 3600,
	                                   .may_requeue = true,
	                                   .has_attempt = true,
	                                   .launched = true};
}

static struct wlbd_job_end judge(const struct wlbd_job_end_facts *facts)
{
	struct wlbd_job_end end;
	wlbd_job_end_judge(facts, &end);
	return end;
}

static void assert_closed(const struct wlbd_job_end_facts *facts, const char *state, const char *reason)
{
	struct wlbd_job_end end = judge(facts);
	assert_int_equal(end.verb, WLBD_JOB_END_CLOSE);
	assert_string_equal(end.state, state);
	if (strstr(end.reason, reason) == NULL)
		fail_msg("'%s' is not in: %s", reason, end.reason);
}

static void test_killed_launcher_is_queued_again(void **state)
{
	static const char *const states[] = {"COMPLETED", "FAILED"};
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct wlbd_job_end_facts facts = facts_of(states[i]);
		struct wlbd_job_end end = judge(&facts); /* it would have told */
		assert_int_equal(end.verb, WLBD_JOB_END_REQUEUE);
		assert_true(end.launcher_lost);
		facts.launcher_lost = true;
		end = judge(&facts);
		assert_int_equal(end.verb, WLBD_JOB_END_REQUEUE);
		assert_false(end.launcher_lost); /* that is recorded already */
		facts.may_requeue = false;
		assert_closed(&facts, "failed", "job 12 ended");
	}
}

static void test_killed_script_is_queued_again(void **state)
{
	struct wlbd_job_end_facts facts = facts_of("FAILED");
	(void)state;
	job.exit_signal = 9;
	struct wlbd_job_end end = judge(&facts);
	assert_int_equal(end.verb, WLBD_JOB_END_REQUEUE);
	assert_true(end.script_lost);
	assert_string_equal(end.reason, "the script of job 12 was killed by signal 9");
	facts.has_attempt = false;
	assert_closed(&facts, "failed", "its script killed by signal 9");
}

static void test_what_slurm_or_the_user_ended_is_not(void **state)
{
	static const char *const states[] = {"CANCELLED",     "TIMEOUT",   "PREEMPTED", "DEADLINE",
	                                     "OUT_OF_MEMORY", "NODE_FAIL", "BOOT_FAIL"};
	(void)state;
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		struct wlbd_job_end_facts facts = facts_of(states[i]);
		facts.launcher_lost = true;
		assert_closed(&facts, i == 0 ? "cancelled" : "failed", states[i]);
	}
}

static void test_slurm_is_believed_where_nothing_could_be_told(void **state)
{
	struct wlbd_job_end_facts facts = facts_of("COMPLETED");
	(void)state;
	facts.recording_s = 30; /* the database came back after the job's end */
	facts.goodbye = true;
	assert_closed(&facts, "complete", "");
	facts.end_reported = true; /* the attempt failed, and the script ignored that */
	assert_closed(&facts, "failed", "job 12 ended COMPLETED");
	facts = facts_of("FAILED");
	job.exit_code = 3;
	facts.recording_s = 30;
	facts.goodbye = true;
	assert_closed(&facts, "failed", "job 12 ended FAILED with exit code 3");
	facts.goodbye = false; /* nobody saw the launcher end */
	assert_int_equal(judge(&facts).verb, WLBD_JOB_END_REQUEUE);
	facts.complete = true;
	assert_closed(&facts, "complete", "");
}

static void assert_waits_until(struct wlbd_job_end_facts facts, int64_t ended_ago_s)
{
	facts.ended_ago_s = ended_ago_s - 1;
	assert_int_equal(judge(&facts).verb, WLBD_JOB_END_WAIT);
	facts.ended_ago_s = ended_ago_s;
	assert_int_not_equal(judge(&facts).verb, WLBD_JOB_END_WAIT);
}

static void test_late_ends_are_waited_for(void **state)
{
	struct wlbd_job_end_facts facts = facts_of("FAILED");
	(void)state;
	assert_waits_until(facts, WLBD_LATE_RECORDS_S);
	facts.goodbye = true;
	assert_waits_until(facts, WLBD_LATE_END_S);
	facts = facts_of("FAILED");
	facts.launcher_lost = true;
	assert_waits_until(facts, WLBD_LATE_KILLED_S);
	facts = facts_of("FAILED");
	job.exit_signal = 9;
	assert_waits_until(facts, WLBD_LATE_KILLED_S);
}

static void test_what_was_recorded_while_wlbd_was_unavailable_is_waited_for(void **state)
{
	struct wlbd_job_end_facts facts = facts_of("FAILED");
	(void)state;
	facts.launcher_lost = true;
	facts.recording_s = WLBD_LATE_END_S - 1;
	assert_int_equal(judge(&facts).verb, WLBD_JOB_END_WAIT);
	facts.recording_s = WLBD_LATE_END_S;
	assert_int_equal(judge(&facts).verb, WLBD_JOB_END_REQUEUE);
	facts.launcher_lost = false;
	assert_int_equal(judge(&facts).verb, WLBD_JOB_END_WAIT);
	facts.recording_s = WLBD_LATE_RECORDS_S;
	assert_int_equal(judge(&facts).verb, WLBD_JOB_END_REQUEUE);
}

static void test_runs_without_a_launcher(void **state)
{
	struct wlbd_job_end_facts facts = facts_of("COMPLETED");
	(void)state;
	facts.launched = false;
	assert_closed(&facts, "complete", "");
	facts = facts_of("FAILED");
	facts.launched = false;
	assert_closed(&facts, "failed", "FAILED");
	facts.job = NULL;
	assert_closed(&facts, "failed", "Slurm no longer knows job 12");
}

/* wlbd and its database were unavailable for longer than Slurm keeps the job. */
static void test_the_spool_of_a_forgotten_job_is_waited_for(void **state)
{
	struct wlbd_job_end_facts facts = facts_of("FAILED");
	(void)state;
	facts.job = NULL;
	facts.ended_ago_s = 0;
	facts.recording_s = 0;
	assert_int_equal(judge(&facts).verb, WLBD_JOB_END_WAIT);
	facts.recording_s = WLBD_LATE_RECORDS_S - 1;
	assert_int_equal(judge(&facts).verb, WLBD_JOB_END_WAIT);
	facts.recording_s = WLBD_LATE_RECORDS_S + 1;
	assert_closed(&facts, "failed", "Slurm no longer knows job 12");
	facts.recording_s = 0;
	facts.complete = true;
	assert_closed(&facts, "complete", "");
}

/* `wlb run A || exit 0` before a second `wlb run`, whose run had saved and stopped when the job was requeued. */
static void test_a_run_that_the_script_does_not_reach_again(void **state)
{
	struct wlbd_job_end_facts facts = facts_of("COMPLETED");
	(void)state;
	facts.launched = false;
	facts.not_reached = true;
	assert_closed(&facts, "failed", "ended without starting this run's wlb run again");
	facts.complete = true;
	assert_closed(&facts, "complete", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_killed_launcher_is_queued_again),
		cmocka_unit_test(test_killed_script_is_queued_again),
		cmocka_unit_test(test_what_slurm_or_the_user_ended_is_not),
		cmocka_unit_test(test_slurm_is_believed_where_nothing_could_be_told),
		cmocka_unit_test(test_late_ends_are_waited_for),
		cmocka_unit_test(test_what_was_recorded_while_wlbd_was_unavailable_is_waited_for),
		cmocka_unit_test(test_runs_without_a_launcher),
		cmocka_unit_test(test_the_spool_of_a_forgotten_job_is_waited_for),
		cmocka_unit_test(test_a_run_that_the_script_does_not_reach_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
