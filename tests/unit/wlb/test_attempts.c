/* From attempt to attempt: what follows on the coordinator's answers, on how attempts end, and on what Slurm refuses.
 */
#include "coordinator/wlb/run/loop/attempts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/command.h"
#include "common/exit_saved.h"
#include "coordinator/wlb/run/attempt/attempt.h"
#include "coordinator/wlb/run/loop/ask_attempt.h"
#include "coordinator/wlb/run/loop/finish.h"
#include "coordinator/wlb/run/stop/grow.h"
#include "coordinator/wlb/run/stop/save_and_requeue.h"

/* What the stand-ins answer, a character for each call, and a trace of the calls. */
static const char *answers; /* (s)tart, (e)nd, (u)navailable, (r)efused */
static const char *ends; /* (c)omplete, (f)ailed, (s)aved and stopped, (g)rows, (n)ot started, (k)illed, (a)bandoned */
static const char *requeues; /* (y)es, (n)o */
static char trace[1024];

void __wrap_wlb_run_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
void __wrap_wlb_run_ask(struct wlb_run *run, struct wlb_turn *turn, int unavailable_s);
int __wrap_wlb_attempt_run(struct wlb_run *run, struct wlb_attempt *attempt, struct wlb_error *error);
int __wrap_wlb_attempt_decide_alone(const struct wlb_run *run, struct wlb_attempt *attempt, struct wlb_error *error);
int __wrap_wlb_run_requeue(struct wlb_run *run, const struct wlb_attempt *attempt, struct wlb_error *error);
bool __wrap_wlb_run_grow_needs_requeue(struct wlb_run *run, const struct wlb_attempt *attempt);
void __wrap_wlb_run_finish(struct wlb_run *run, const struct wlb_turn *turn, const struct wlb_next *next);

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *format, ...)
{
	size_t used = strlen(trace);
	va_list args;
	va_start(args, format);
	vsnprintf(trace + used, sizeof(trace) - used, format, args);
	va_end(args);
}

/* Returns '\0' at the end. */
static char take(const char **letters)
{
	return **letters != '\0' ? *(*letters)++ : '\0';
}

void __wrap_wlb_run_print(const char *format, ...)
{
	(void)format;
}

void __wrap_wlb_run_ask(struct wlb_run *run, struct wlb_turn *turn, int unavailable_s)
{
	char answer = take(&answers);
	note(unavailable_s > 0 ? "ask after %d;" : "ask;", run->attempts);
	turn->answer = answer == 's'   ? WLB_ANSWER_START
	               : answer == 'e' ? WLB_ANSWER_STOP
	               : answer == 'r' ? WLB_ANSWER_REFUSED
	                               : WLB_ANSWER_UNAVAILABLE;
}

int __wrap_wlb_attempt_run(struct wlb_run *run, struct wlb_attempt *attempt, struct wlb_error *error)
{
	char end = take(&ends);
	note("attempt %d;", attempt->number);
	run->attempts = attempt->number;
	run->cancelled = end == 'k';
	run->abandoned = end == 'a';
	if (end == 'n')
		return wlb_fail(error, "no srun");
	attempt->stopped = end == 's' || end == 'g';
	attempt->exit_code = attempt->stopped ? WLB_EXIT_SAVED : end == 'c' ? 0 : 1;
	attempt->stop = end == 's' ? WLB_RUN_STOP_LIMIT : end == 'g' ? WLB_RUN_STOP_GROW : WLB_RUN_STOP_NONE;
	return 0;
}

int __wrap_wlb_attempt_decide_alone(const struct wlb_run *run, struct wlb_attempt *attempt, struct wlb_error *error)
{
	(void)run;
	(void)attempt;
	(void)error;
	note("alone;");
	return 0;
}

int __wrap_wlb_run_requeue(struct wlb_run *run, const struct wlb_attempt *attempt, struct wlb_error *error)
{
	(void)run;
	note("requeue after %d;", attempt->number);
	return take(&requeues) == 'y' ? 0 : wlb_fail(error, "refused");
}

bool __wrap_wlb_run_grow_needs_requeue(struct wlb_run *run, const struct wlb_attempt *attempt)
{
	(void)run;
	return attempt->stop == WLB_RUN_STOP_GROW;
}

void __wrap_wlb_run_finish(struct wlb_run *run, const struct wlb_turn *turn, const struct wlb_next *next)
{
	static const char *const outcomes[] = {
		[WLB_OUTCOME_COMPLETE] = "complete",         [WLB_OUTCOME_CANCELLED] = "cancelled",
		[WLB_OUTCOME_NOT_STARTED] = "not started",   [WLB_OUTCOME_NOT_REQUEUED] = "not requeued",
		[WLB_OUTCOME_RESTARTS] = "no restarts",      [WLB_OUTCOME_COORDINATOR] = "coordinator",
		[WLB_OUTCOME_UNAVAILABLE] = "nobody decides"};
	(void)run;
	(void)turn;
	note("%s: %s", outcomes[next->end], next->state);
}

static struct test_case {
	const char *answers, *ends, *requeues, *trace;
	int exit_code;
	bool has_no_coordinator, grows_by_job;
} cases[] = {
	{"s", "c", "", "ask;attempt 1;complete: complete", 0, false, false},
	{"ss", "fc", "", "ask;attempt 1;ask after 1;attempt 2;complete: complete", 0, false, false},
	{"sss", "fff", "", "ask;attempt 1;ask after 1;attempt 2;ask after 2;attempt 3;no restarts: failed", 1, false,
         false},
	/* Attempts that have saved and stopped are no restarts. */
	{"sssss", "gggfc", "",
         "ask;attempt 1;ask after 1;attempt 2;ask after 2;attempt 3;ask after 3;attempt 4;ask after 4;attempt 5;"
         "complete: complete",
         0, false, false},
	{"se", "f", "", "ask;attempt 1;ask after 1;coordinator: failed", 1, false, false},
	{"u", "c", "", "ask;alone;attempt 1;complete: complete", 0, false, false},
	{"r", "c", "", "ask;alone;attempt 1;complete: complete", 0, false, false},
	{"su", "f", "", "ask;attempt 1;ask after 1;nobody decides: failed", 1, false, false},
	{"", "c", "", "alone;attempt 1;complete: complete", 0, true, false},
	{"", "f", "", "alone;attempt 1;nobody decides: failed", 1, true, false},
	{"s", "n", "", "ask;attempt 1;not started: failed", WLB_EXIT_FAILED, false, false},
	{"s", "k", "", "ask;attempt 1;cancelled: cancelled", 1, false, false},
	/* Nobody is told. */
	{"s", "a", "", "ask;attempt 1;", WLB_EXIT_FAILED, false, false},
	{"s", "s", "y", "ask;attempt 1;requeue after 1;", WLB_EXIT_SAVED, false, false},
	{"s", "s", "n", "ask;attempt 1;requeue after 1;not requeued: cancelled", WLB_EXIT_SAVED, false, false},
	{"s", "g", "y", "ask;attempt 1;requeue after 1;", WLB_EXIT_SAVED, false, true},
	/* The run goes on in its job, and may grow once more. */
	{"sss", "ggc", "nn",
         "ask;attempt 1;requeue after 1;ask after 1;attempt 2;requeue after 2;ask after 2;attempt 3;complete: complete",
         0, false, true},
};

static void each_end_has_its_next_step(void **state)
{
	char *command[] = {"train.sh", NULL};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct test_case *row = &cases[i];
		struct wlb_run run = {.options = {.command = command, .max_restarts = 2, .wait_s = 1},
		                      .connection = row->has_no_coordinator ? NULL : (struct wlb_connection *)&run,
		                      .grow.way = row->grows_by_job ? WLB_GROW_REQUEUE : WLB_GROW_IN_JOB};
		answers = row->answers;
		ends = row->ends;
		requeues = row->requeues;
		trace[0] = '\0';
		assert_int_equal(wlb_run_attempts(&run), row->exit_code);
		assert_string_equal(trace, row->trace);
		assert_true(*answers == '\0' && *ends == '\0' && *requeues == '\0');
	}
}

/* By the id of its first attempt the coordinator knows this process, and each attempt has an id of its own. */
static void the_first_attempt_names_the_launcher(void **state)
{
	char *command[] = {"train.sh", NULL};
	struct wlb_run run = {.options = {.command = command}};
	(void)state;
	answers = requeues = "";
	ends = "c";
	trace[0] = '\0';
	assert_int_equal(wlb_run_attempts(&run), 0);
	assert_int_equal(strlen(run.launcher_id), 36);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_end_has_its_next_step),
		cmocka_unit_test(the_first_attempt_names_the_launcher),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
