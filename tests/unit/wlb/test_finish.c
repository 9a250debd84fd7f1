/* What the user and the coordinator read of how a run ended. */
#include "coordinator/wlb/run/loop/finish.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/wlb/run/loop/ask_attempt.h"
#include "coordinator/wlb/run/state/deliver_records.h"

static char printed[2048], reported[2048]; /* a line each time */

void __wrap_wlb_run_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
void __wrap_wlb_run_deliver_last(struct wlb_run *run);
void __wrap_wlb_run_end(const struct wlb_run *run, const struct wlb_attempt *last, const char *state, int exit_code,
                        const char *reason);

void __wrap_wlb_run_print(const char *format, ...)
{
	size_t used = strlen(printed);
	va_list args;
	va_start(args, format);
	vsnprintf(printed + used, sizeof(printed) - used, format, args);
	va_end(args);
	used = strlen(printed);
	snprintf(printed + used, sizeof(printed) - used, "\n");
}

void __wrap_wlb_run_deliver_last(struct wlb_run *run)
{
	assert_true(run->end_until_ms > 0);
	assert_string_equal(reported, ""); /* the records come first */
}

void __wrap_wlb_run_end(const struct wlb_run *run, const struct wlb_attempt *last, const char *state, int exit_code,
                        const char *reason)
{
	(void)run;
	snprintf(reported, sizeof(reported), "%s %s %d %s", last != NULL ? last->id : "none", state, exit_code, reason);
}

static const struct test_case {
	enum wlb_outcome end;
	enum wlb_answer answer;
	bool has_coordinator;
	const char *state, *printed, *reason;
} cases[] = {
	{WLB_OUTCOME_COMPLETE, WLB_ANSWER_NONE, true, "complete", "run 12 complete after 2 attempts\n", ""},
	{WLB_OUTCOME_CANCELLED, WLB_ANSWER_NONE, true, "cancelled",
         "run 12 cancelled after 2 attempts: rank 3 has ended\n", "rank 3 has ended"},
	/* Not how the attempt before has ended. */
	{WLB_OUTCOME_CANCELLED, WLB_ANSWER_WAIT, true, "cancelled", "run 12 cancelled after 2 attempts\n", ""},
	{WLB_OUTCOME_NOT_STARTED, WLB_ANSWER_START, true, "failed",
         "run 12 failed after 2 attempts: what was tried last\n", "what was tried last"},
	{WLB_OUTCOME_NOT_REQUEUED, WLB_ANSWER_NONE, true, "failed",
         "run 12 failed after 2 attempts: rank 3 has ended; what was tried last\n",
         "rank 3 has ended; what was tried last"},
	{WLB_OUTCOME_COMMAND, WLB_ANSWER_NONE, true, "failed", "run 12 failed after 2 attempts: rank 3 has ended\n",
         "rank 3 has ended"},
	{WLB_OUTCOME_RESTARTS, WLB_ANSWER_NONE, true, "failed",
         "attempt 2: rank 3 has ended\nrun 12 failed after 2 attempts: no restart is left: --max-restarts allows no "
         "more\n",
         "no restart is left: --max-restarts allows no more"},
	{WLB_OUTCOME_COORDINATOR, WLB_ANSWER_STOP, true, "failed",
         "run 12 out_of_nodes after 2 attempts: no node is left\n", "no node is left"},
	{WLB_OUTCOME_UNAVAILABLE, WLB_ANSWER_UNAVAILABLE, true, "failed",
         "run 12 failed after 2 attempts: rank 3 has ended, and there is no next attempt: what was tried last\n",
         "rank 3 has ended, and there is no next attempt: what was tried last"},
	{WLB_OUTCOME_UNAVAILABLE, WLB_ANSWER_UNAVAILABLE, false, "failed",
         "run 12 failed after 2 attempts: rank 3 has ended, and without a coordinator there is no next attempt\n",
         "rank 3 has ended, and without a coordinator there is no next attempt"},
};

static void each_end_has_its_words(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct test_case *row = &cases[i];
		struct wlb_run run = {
			.id = "12",
			.attempts = 2,
			.connection = row->has_coordinator ? (struct wlb_connection *)&run : NULL,
		};
		const struct wlb_turn turn = {.last = {.id = "b", .number = 2, .end_reason = "rank 3 has ended"},
		                              .next.reason = "no node is left",
		                              .answer = row->answer,
		                              .state = "out_of_nodes",
		                              .error.message = "what was tried last"};
		const struct wlb_next next = {.end = row->end, .state = row->state, .exit_code = 7};
		char expected[512];
		printed[0] = reported[0] = '\0';
		wlb_run_finish(&run, &turn, &next);
		assert_string_equal(printed, row->printed);
		snprintf(expected, sizeof(expected), "b %s 7 %s",
		         row->end == WLB_OUTCOME_COORDINATOR ? "out_of_nodes" : row->state, row->reason);
		assert_string_equal(reported, expected);
	}
}

/* How many attempts a job had before it was requeued is not known before the next one. */
static void attempts_are_counted_where_they_are_known(void **state)
{
	static const struct {
		int attempts, restart_count;
		const char *printed;
	} counts[] = {{0, 0, "run 12 cancelled after 0 attempts\n"},
	              {0, 1, "run 12 cancelled\n"},
	              {1, 1, "run 12 cancelled after 1 attempt\n"}};
	const struct wlb_next next = {.end = WLB_OUTCOME_CANCELLED, .state = "cancelled", .exit_code = 143};
	const struct wlb_turn turn = {.answer = WLB_ANSWER_WAIT};
	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct wlb_run run = {.id = "12",
		                      .attempts = counts[i].attempts,
		                      .job.restart_count = (uint32_t)counts[i].restart_count};
		printed[0] = reported[0] = '\0';
		wlb_run_finish(&run, &turn, &next);
		assert_string_equal(printed, counts[i].printed);
		assert_string_equal(reported, "none cancelled 143 ");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_end_has_its_words),
		cmocka_unit_test(attempts_are_counted_where_they_are_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
