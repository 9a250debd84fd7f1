#include "coordinator/wlb/run/stop/time_limit.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "common/exit_saved.h"
#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlb/run/loop/next.h"
#include "coordinator/wlb/run/state/journal.h"
#include "coordinator/wlb/run/state/progress.h"
#include "coordinator/wlb/run/state/run_identity.h"
#include "coordinator/wlb/run/stop/save_and_requeue.h"

static char dir[] = "/tmp/wlb-time-limit-XXXXXX";
static char times[64], spool[128];
static const char *preempt_type; /* slurmctld's answer; NULL: it gives none */
static bool job_is_known;

bool __wrap_wlb_slurm_config(const char *key, char *value, size_t size);
int __wrap_wlb_slurm_job(uint32_t job_id, struct wlb_slurm_job *job, struct wlb_error *error);

bool __wrap_wlb_slurm_config(const char *key, char *value, size_t size)
{
	assert_string_equal(key, "PreemptType");
	if (preempt_type == NULL)
		return false;
	snprintf(value, size, "%s", preempt_type);
	return true;
}

int __wrap_wlb_slurm_job(uint32_t job_id, struct wlb_slurm_job *job, struct wlb_error *error)
{
	(void)job_id;
	(void)error;
	memset(job, 0, sizeof(*job));
	job->running = true;
	job->end_time = time(NULL) + 3600;
	job->nodes = strdup("");
	return job_is_known;
}

/* A job that ends in so many seconds by the clock of this host, which is before slurmctld's or behind it; Slurm is not
 * asked soon. */
static struct wlb_run job_with(int64_t left_s, double clock_ahead_s)
{
	return (struct wlb_run){.job = {.end_time = time(NULL) + left_s, .clock_ahead_s = clock_ahead_s},
	                        .limit = {.is_given = true, .given_s = 60, .next_query_ms = wlb_clock_ms() + 3600000}};
}

static void an_end_is_by_the_clock_of_slurmctld(void **state)
{
	static const struct {
		int64_t left_s;
		double clock_ahead_s, really_left_s;
	} cases[] = {{100, 0, 100}, {100, -31, 69}, {100, -300, -200}, {100, 300, 400}};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct wlb_run run = job_with(cases[i].left_s, cases[i].clock_ahead_s);
		assert_float_equal(wlb_run_limit_left_s(&run), cases[i].really_left_s, 5);
	}
	const struct wlb_run unknown = {.job = {.clock_ahead_s = -31}};
	assert_true(isinf(wlb_run_limit_left_s(&unknown)));
}

static void the_command_is_asked_in_time(void **state)
{
	struct wlb_run behind = job_with(100, -50), before = job_with(50, 50), equal = job_with(100, 0);
	(void)state;
	assert_int_equal(wlb_run_limit_check(&behind), WLB_RUN_STOP_LIMIT);
	assert_int_equal(wlb_run_limit_check(&before), WLB_RUN_STOP_NONE);
	assert_int_equal(wlb_run_limit_check(&equal), WLB_RUN_STOP_NONE);
}

/* A run of wlb-worker in a start of job 12 that ends in so many seconds. */
static struct wlb_run *start_of(int64_t left_s, uint32_t restart_count)
{
	static struct wlb_run run = {.journal.fd = -1};
	static char *command[] = {"wlb-worker", "train", NULL};
	struct wlb_error error;
	wlb_run_journal_close(&run);
	run = (struct wlb_run){.id = "12",
	                       .options.command = command,
	                       .progress.fd = -1,
	                       .job = {.job_id = 12,
	                               .submit_time = 1000 + restart_count,
	                               .restart_count = restart_count,
	                               .end_time = time(NULL) + left_s}};
	snprintf(run.job.spool_dir, sizeof(run.job.spool_dir), "%s", dir);
	assert_int_equal(wlb_run_journal_open(&run, &error), 0);
	assert_int_equal(wlb_run_identify(&run, &error), 0);
	wlb_run_limit_open(&run);
	run.limit.next_query_ms = wlb_clock_ms() + 3600000;
	return &run;
}

static enum wlb_run_stop check_with(struct wlb_run *run, int64_t left_s)
{
	run->job.end_time = time(NULL) + left_s;
	return wlb_run_limit_check(run);
}

static void before_the_first_save_there_is_time_for_one(void **state)
{
	static const struct {
		int64_t limit_s, before_s;
	} cases[] = {{120, 30}, {3600, 180}, {24 * 3600, 300}};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wlb_run *run = start_of(cases[i].limit_s, 0);
		assert_int_equal(check_with(run, cases[i].before_s + 5), WLB_RUN_STOP_NONE);
		assert_int_equal(check_with(run, cases[i].before_s - 5), WLB_RUN_STOP_LIMIT);
	}
}

static void record(const char *attempt, const char *line)
{
	snprintf(spool, sizeof(spool), "%s/%s.rank0.jsonl", dir, attempt);
	FILE *file = fopen(spool, "w");
	assert_non_null(file);
	fputs(line, file);
	fclose(file);
}

/* Of the first start of a job that was submitted at 1000. */
static void write_times(const char *times_of_run)
{
	FILE *file = fopen(times, "w");
	assert_non_null(file);
	fprintf(file, "{\"submit_time\":1000,\"runs\":[{\"key\":\"command 1\"%s}]}", times_of_run);
	fclose(file);
}

/* The second start would be killed in its first save, which takes 45 s: 30 s before the end are too few. */
static void a_start_that_has_not_saved_knows_how_long_it_takes(void **state)
{
	(void)state;
	struct wlb_run *run = start_of(3600, 0);
	record("a", "{\"type\":\"step\",\"data\":{\"step\":1,\"step_time_s\":10}}\n"
	            "{\"type\":\"checkpoint\",\"data\":{\"step\":1,\"duration_s\":45}}\n");
	wlb_run_limit_read_times(run, "a");
	assert_int_equal(check_with(run, 3 * 45 + 10 + 5), WLB_RUN_STOP_NONE);
	assert_int_equal(check_with(run, 3 * 45 + 10 - 5), WLB_RUN_STOP_LIMIT);
	close(run->progress.fd);
	unlink(spool);
	run = start_of(600, 1);
	assert_int_equal(check_with(run, 3 * 45 + 10 + 5), WLB_RUN_STOP_NONE);
	assert_int_equal(check_with(run, 3 * 45 + 10 - 5), WLB_RUN_STOP_LIMIT);
	run = start_of(600, 0); /* another job of the same id */
	assert_int_equal(check_with(run, 40), WLB_RUN_STOP_NONE);
}

#define LONG_SAVE ",\"save_before_s\":1205.0,\"save_block_s\":0.0,\"save_count\":0,\"step_s\":3.0"

/* Otherwise each start of the job would stop at once, and the job be requeued again and again. */
static void half_of_the_job_at_least_is_left_to_the_command(void **state)
{
	(void)state;
	write_times(LONG_SAVE);
	struct wlb_run *run = start_of(3600, 0);
	assert_int_equal(check_with(run, 3595), WLB_RUN_STOP_NONE);
	assert_int_equal(check_with(run, 1805), WLB_RUN_STOP_NONE);
	assert_int_equal(check_with(run, 1795), WLB_RUN_STOP_LIMIT);
	run = start_of(40, 0); /* of a job of one minute 30 s are left all the same */
	assert_int_equal(check_with(run, 35), WLB_RUN_STOP_NONE);
	assert_int_equal(check_with(run, 25), WLB_RUN_STOP_LIMIT);
	run = start_of(600, 0);
	run->limit.is_given = true;
	run->limit.given_s = 700;
	assert_int_equal(check_with(run, 305), WLB_RUN_STOP_NONE);
	assert_int_equal(check_with(run, 295), WLB_RUN_STOP_LIMIT);
	run->limit.given_s = 500; /* the user knows why */
	assert_int_equal(check_with(run, 495), WLB_RUN_STOP_LIMIT);
}

/* An administrator has made the time limit longer. */
static void half_of_a_longer_job_is_more(void **state)
{
	(void)state;
	write_times(LONG_SAVE);
	struct wlb_run *run = start_of(600, 0);
	assert_int_equal(check_with(run, 305), WLB_RUN_STOP_NONE);
	job_is_known = true; /* it ends in 3600 s */
	run->limit.next_query_ms = wlb_clock_ms();
	assert_int_equal(wlb_run_limit_check(run), WLB_RUN_STOP_NONE);
	assert_int_equal(check_with(run, 1795), WLB_RUN_STOP_LIMIT);
}

static void save_once(struct wlb_run *run, int duration_s)
{
	struct wlb_attempt attempt = {.id = "a"};
	char line[100];
	snprintf(line, sizeof(line), "{\"type\":\"checkpoint\",\"data\":{\"step\":1,\"duration_s\":%d}}\n", duration_s);
	record("a", line);
	run->limit.next_read_ms = wlb_clock_ms() + 3600000; /* it was read just before */
	wlb_run_note_stop(run, &attempt);
	assert_true(attempt.has_saved);
	unlink(spool);
}

/* Each start saves once, when it is asked. */
static void a_long_save_is_forgotten_after_some_starts(void **state)
{
	(void)state;
	save_once(start_of(3600, 0), 300);
	for (uint32_t restart = 1; restart <= 7; restart++) {
		struct wlb_run *run = start_of(3600, restart);
		assert_int_equal(check_with(run, 895), WLB_RUN_STOP_LIMIT);
		save_once(run, 20);
	}
	struct wlb_run *run = start_of(3600, 8);
	assert_int_equal(check_with(run, 3 * 20 + 5), WLB_RUN_STOP_NONE);
	assert_int_equal(check_with(run, 3 * 20 - 5), WLB_RUN_STOP_LIMIT);
}

static enum wlb_next_step step_after(struct wlb_run *run, const struct wlb_attempt *attempt)
{
	struct wlb_turn turn = {.last = *attempt, .answer = WLB_ANSWER_WAIT};
	snprintf(turn.last.id, sizeof(turn.last.id), "a");
	return wlb_run_next(run, &turn).step;
}

static void the_coordinator_decides_on_an_attempt_that_has_saved_nothing(void **state)
{
	const struct wlb_attempt failed = {.exit_code = 1}, has_saved = {.exit_code = 1, .has_saved = true},
				 stopped = {.exit_code = WLB_EXIT_SAVED, .stopped = true, .stop = WLB_RUN_STOP_GROW};
	(void)state;
	struct wlb_run *run = start_of(600, 0);
	run->job.end_time = time(NULL) + 40;
	assert_int_equal(step_after(run, &failed), WLB_NEXT_WAIT); /* 30 s before the end the command is asked */
	assert_int_equal(step_after(run, &has_saved), WLB_NEXT_WAIT);
	run->job.end_time = time(NULL) + 25;
	assert_int_equal(step_after(run, &failed), WLB_NEXT_WAIT);
	assert_int_equal(step_after(run, &has_saved), WLB_NEXT_REQUEUE);
	assert_int_equal(step_after(run, &stopped), WLB_NEXT_REQUEUE);
	run->job.end_time = time(NULL) + 15; /* later there is no time to requeue the job */
	assert_int_equal(step_after(run, &failed), WLB_NEXT_REQUEUE);
}

static void times_that_cannot_be_believed_are_ignored(void **state)
{
	static const char *const lines[] = {
		"",
		",\"save_before_s\":45",
		",\"save_before_s\":45,\"save_block_s\":0,\"save_count\":0",
		",\"save_before_s\":\"nan\",\"save_block_s\":0,\"save_count\":0,\"step_s\":1",
		",\"save_before_s\":-45,\"save_block_s\":0,\"save_count\":0,\"step_s\":1",
		",\"save_before_s\":1e9,\"save_block_s\":0,\"save_count\":0,\"step_s\":1",
		",\"save_before_s\":45,\"save_block_s\":0,\"save_count\":-1,\"step_s\":1"};
	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		write_times(lines[i]);
		assert_int_equal(check_with(start_of(600, 0), 40), WLB_RUN_STOP_NONE);
	}
}

static void a_job_that_might_be_preempted_is_treated_as_one_that_may(void **state)
{
	static const struct {
		const char *type;
		bool may_be;
	} cases[] = {{"preempt/qos", true}, {"preempt/none", false}, {"(null)", false}};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		preempt_type = NULL;
		job_is_known = false;
		struct wlb_run *run = start_of(3600, 0);
		assert_true(run->limit.may_be_preempted);
		preempt_type = cases[i].type;
		run->limit.next_query_ms = wlb_clock_ms();
		wlb_run_limit_check(run);
		assert_true(run->limit.may_be_preempted); /* slurmctld is away: it is not asked twice */
		job_is_known = true;
		run->limit.next_query_ms = wlb_clock_ms();
		wlb_run_limit_check(run);
		assert_int_equal(run->limit.may_be_preempted, cases[i].may_be);
		assert_int_equal(start_of(3600, 0)->limit.may_be_preempted, cases[i].may_be);
	}
	struct wlb_run other = {
		.journal.fd = -1, .job = {.end_time = time(NULL) + 3600}, .options.command = (char *[]){"train", NULL}};
	preempt_type = "preempt/qos";
	wlb_run_limit_open(&other); /* its program is not asked at all */
	assert_false(other.limit.may_be_preempted);
}

/* It has called wlb.should_stop(), of which the file of its rank 0 tells. */
static void a_trainer_that_asks_by_itself_is_asked_before_the_limit(void **state)
{
	static char *command[] = {"train", NULL};
	char file[128];
	(void)state;
	struct wlb_run *run = start_of(600, 0);
	run->options.command = command;
	wlb_run_limit_read_times(run, "a");
	assert_int_equal(check_with(run, 25), WLB_RUN_STOP_NONE);
	snprintf(file, sizeof(file), "%s/stop-12-a.step", dir);
	FILE *answer = fopen(file, "w");
	assert_non_null(answer);
	fclose(answer);
	run->limit.next_read_ms = 0;
	wlb_run_limit_read_times(run, "a");
	assert_int_equal(check_with(run, 35), WLB_RUN_STOP_NONE);
	assert_int_equal(check_with(run, 25), WLB_RUN_STOP_LIMIT);
	unlink(file);
	run->limit.is_given = true; /* --stop-before-end 0 */
	assert_int_equal(check_with(run, 25), WLB_RUN_STOP_NONE);
}

static int remove_times(void **state)
{
	(void)state;
	unlink(times);
	return 0;
}

static int make_dir(void **state)
{
	(void)state;
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(times, sizeof(times), "%s/12.json", dir);
	return 0;
}

static int remove_dir(void **state)
{
	remove_times(state);
	return rmdir(dir);
}

#define TEST(name) cmocka_unit_test_setup(name, remove_times)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_end_is_by_the_clock_of_slurmctld),
		TEST(the_command_is_asked_in_time),
		TEST(before_the_first_save_there_is_time_for_one),
		TEST(a_start_that_has_not_saved_knows_how_long_it_takes),
		TEST(half_of_the_job_at_least_is_left_to_the_command),
		TEST(half_of_a_longer_job_is_more),
		TEST(a_long_save_is_forgotten_after_some_starts),
		TEST(the_coordinator_decides_on_an_attempt_that_has_saved_nothing),
		TEST(times_that_cannot_be_believed_are_ignored),
		TEST(a_job_that_might_be_preempted_is_treated_as_one_that_may),
		TEST(a_trainer_that_asks_by_itself_is_asked_before_the_limit),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
