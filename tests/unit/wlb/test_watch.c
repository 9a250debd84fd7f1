/* An attempt's srun, which is a script of the shell here: how its end is found, and how orders and signals end it. */
#include "coordinator/wlb/run/attempt/watch.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "coordinator/wlb/run/check/suspects.h"
#include "coordinator/wlb/run/stop/signals.h"

static bool is_in_haste;    /* every deadline is over */
static bool has_step;       /* by Slurm's answer */
static const char *order;   /* of the coordinator; NULL: none */
static bool waits_for_lost; /* only tasks of lost nodes are left */
static int step_kills;
static char printed[1024];
static struct wlb_run_suspects checks;
static char *command[] = {"train.sh", NULL};

int __real_wlb_clock_left_ms(int64_t until_ms);
int __wrap_wlb_clock_left_ms(int64_t until_ms);
int __wrap_wlb_slurm_step_of(uint32_t job_id, pid_t pid, uint32_t *step_id, struct wlb_error *error);
int __wrap_wlb_slurm_step_kill(uint32_t job_id, uint32_t step_id, int signal, struct wlb_error *error);
int __wrap_wlb_reporter_must_end(const struct wlb_reporter *reporter, const char **reason);
bool __wrap_wlb_reporter_survivors_ended(const struct wlb_reporter *reporter);
void __wrap_wlb_reporter_step_id(struct wlb_reporter *reporter, const char *step_id);
void __wrap_wlb_run_record_event(struct wlb_reporter *reporter, const char *kind, const char *detail);
void __wrap_wlb_run_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

int __wrap_wlb_clock_left_ms(int64_t until_ms)
{
	return is_in_haste ? 0 : __real_wlb_clock_left_ms(until_ms);
}

int __wrap_wlb_slurm_step_of(uint32_t job_id, pid_t pid, uint32_t *step_id, struct wlb_error *error)
{
	(void)job_id;
	(void)pid;
	(void)error;
	*step_id = 4;
	return has_step;
}

int __wrap_wlb_slurm_step_kill(uint32_t job_id, uint32_t step_id, int signal, struct wlb_error *error)
{
	(void)error;
	assert_int_equal(job_id, 12);
	assert_int_equal(step_id, 4);
	assert_int_equal(signal, SIGKILL);
	step_kills++;
	return 0;
}

int __wrap_wlb_reporter_must_end(const struct wlb_reporter *reporter, const char **reason)
{
	(void)reporter;
	*reason = order;
	return order != NULL;
}

bool __wrap_wlb_reporter_survivors_ended(const struct wlb_reporter *reporter)
{
	(void)reporter;
	return waits_for_lost;
}

void __wrap_wlb_reporter_step_id(struct wlb_reporter *reporter, const char *step_id)
{
	(void)reporter;
	assert_string_equal(step_id, "12.4");
}

void __wrap_wlb_run_record_event(struct wlb_reporter *reporter, const char *kind, const char *detail)
{
	(void)reporter;
	assert_string_equal(kind, "step_started");
	assert_string_equal(detail, "12.4");
}

void __wrap_wlb_run_print(const char *format, ...)
{
	size_t used = strlen(printed);
	va_list args;
	va_start(args, format);
	vsnprintf(printed + used, sizeof(printed) - used, format, args);
	va_end(args);
}

static pid_t start(const char *script, int *its_stderr)
{
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0) {
		sigset_t none;
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		setpgid(0, 0);
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		execl("/bin/sh", "sh", "-c", script, (char *)NULL);
		_exit(127);
	}
	assert_true(child > 0);
	setpgid(child, child);
	close(ends[1]);
	*its_stderr = ends[0];
	return child;
}

static void begin(struct wlb_run *run, struct wlb_attempt *attempt)
{
	*run = (struct wlb_run){.options.command = command,
	                        .job = {.job_id = 12, .node_count = 1},
	                        .journal.fd = -1,
	                        .progress = {.fd = -1, .saved_step = -1},
	                        .suspects = &checks,
	                        .signal_fd = -1,
	                        .parent_fd = -1};
	*attempt = (struct wlb_attempt){.id = "a", .number = 1, .node_count = 1, .tasks_per_node = 2};
	is_in_haste = has_step = waits_for_lost = false;
	order = NULL;
	step_kills = 0;
	printed[0] = '\0';
}

/* Returns its process id. */
static pid_t watch(struct wlb_run *run, struct wlb_attempt *attempt, const char *script, bool has_reporter)
{
	int its_stderr;
	pid_t srun = start(script, &its_stderr);
	wlb_run_watch(run, attempt, srun, its_stderr, has_reporter ? (struct wlb_reporter *)run : NULL);
	return srun;
}

/* What was written to our stderr meanwhile is in `text`. */
static void watch_output(struct wlb_run *run, struct wlb_attempt *attempt, const char *script, char *text, size_t size)
{
	int ours = dup(STDERR_FILENO);
	FILE *file = tmpfile();
	assert_non_null(file);
	dup2(fileno(file), STDERR_FILENO);
	watch(run, attempt, script, false);
	dup2(ours, STDERR_FILENO);
	close(ours);
	rewind(file);
	text[fread(text, 1, size - 1, file)] = '\0';
	fclose(file);
}

static void the_first_task_to_fail_is_read_from_what_srun_writes(void **state)
{
	static const char line[] = "srun: error: n1: task 1: Exited with exit code 3\n";
	char text[256];
	struct wlb_run run;
	struct wlb_attempt attempt;
	(void)state;
	begin(&run, &attempt);
	watch_output(&run, &attempt, "echo 'srun: error: n1: task 1: Exited with exit code 3' >&2; exit 1", text,
	             sizeof(text));
	assert_string_equal(text, line);
	assert_int_equal(attempt.exit_code, 3);
	assert_true(attempt.first_exit.known);
	assert_int_equal(attempt.first_exit.rank, 1);
	assert_non_null(strstr(attempt.end_reason, "rank 1"));
	assert_int_equal(attempt.ended_by, WLB_ENDED_BY_ITSELF);
	assert_false(attempt.stopped);
}

static void an_srun_that_another_process_kills_is_no_cause_of_a_rank(void **state)
{
	struct wlb_run run;
	struct wlb_attempt attempt;
	(void)state;
	begin(&run, &attempt);
	pid_t srun = watch(&run, &attempt, "kill -9 $$", false);
	assert_int_equal(attempt.exit_code, 128 + SIGKILL);
	assert_int_equal(attempt.srun_signal, SIGKILL);
	assert_int_equal(run.killed_srun, srun);
	assert_false(attempt.first_exit.known);
	assert_string_equal(attempt.end_reason, "srun was killed by signal 9");
}

/* The step is killed first, then srun, which ignores SIGTERM here. */
static void an_order_ends_the_step_and_then_srun(void **state)
{
	struct wlb_run run;
	struct wlb_attempt attempt;
	(void)state;
	begin(&run, &attempt);
	is_in_haste = has_step = true;
	order = "rank 1 hangs";
	watch(&run, &attempt, "trap '' TERM; while :; do sleep 1; done", true);
	assert_int_equal(step_kills, 1);
	assert_int_equal(attempt.exit_code, 128 + SIGKILL);
	assert_int_equal(attempt.ended_by, WLB_ENDED_BY_ORDER);
	assert_string_equal(attempt.end_reason, "rank 1 hangs");
	assert_string_equal(attempt.step_id, "12.4");
	assert_int_equal(attempt.srun_signal, 0);
	assert_non_null(strstr(printed, "ending attempt 1: rank 1 hangs"));
}

static void an_srun_that_waits_for_lost_nodes_alone_is_killed(void **state)
{
	struct wlb_run run;
	struct wlb_attempt attempt;
	(void)state;
	begin(&run, &attempt);
	is_in_haste = has_step = waits_for_lost = true;
	order = "node n2 is lost";
	watch(&run, &attempt, "trap '' TERM; while :; do sleep 1; done", true);
	assert_int_equal(step_kills, 1);
	assert_int_equal(attempt.exit_code, 128 + SIGKILL);
	assert_string_equal(attempt.end_reason, "node n2 is lost");
	assert_non_null(strstr(printed, "it waits for tasks of lost nodes alone"));
}

static void a_signal_that_ends_the_run_ends_srun(void **state)
{
	struct wlb_run run;
	struct wlb_attempt attempt;
	struct wlb_error error;
	(void)state;
	begin(&run, &attempt);
	assert_int_equal(wlb_run_signals_block(&run, &error), 0);
	raise(SIGTERM);
	watch(&run, &attempt, "while :; do sleep 1; done", false);
	close(run.signal_fd);
	sigprocmask(SIG_SETMASK, &run.signals_before, NULL);
	assert_true(run.cancelled);
	assert_int_equal(attempt.ended_by, WLB_ENDED_BY_CANCEL);
	assert_int_equal(attempt.exit_code, 128 + SIGTERM);
	assert_string_equal(attempt.end_reason, "cancelled by signal TERM");
	assert_int_equal(attempt.srun_signal, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_task_to_fail_is_read_from_what_srun_writes),
		cmocka_unit_test(an_srun_that_another_process_kills_is_no_cause_of_a_rank),
		cmocka_unit_test(an_order_ends_the_step_and_then_srun),
		cmocka_unit_test(an_srun_that_waits_for_lost_nodes_alone_is_killed),
		cmocka_unit_test(a_signal_that_ends_the_run_ends_srun),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
