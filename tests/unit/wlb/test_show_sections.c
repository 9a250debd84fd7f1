/* The sections of `wlb show`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/wlb/history/show_sections.h"
#include "coordinator/wlb/history/why_layout.h"

/* Returns what the section prints, which the caller frees. */
static char *printed(int (*section)(const json_t *), const json_t *value)
{
	char *text = NULL;
	size_t size;
	FILE *kept = stdout;
	stdout = open_memstream(&text, &size);
	int rc = section(value);
	fclose(stdout);
	stdout = kept;
	assert_int_equal(rc, 0);
	return text;
}

static void expect(int (*section)(const json_t *), json_t *value, const char *expected)
{
	assert_non_null(value);
	char *text = printed(section, value);
	assert_string_equal(text, expected);
	free(text);
	json_decref(value);
}

static void small_learning_rates_have_their_digits(void **state)
{
	expect(wlb_show_steps,
	       json_pack("[{s:i, s:f, s:f}, {s:i, s:f, s:f}, {s:i}]", "step", 1, "lr", 2.5e-7, "loss", 2.0, "step", 2,
	                 "lr", 0.001, "loss", 1.0, "step", 3),
	       "\nSteps\n"
	       "  STEP  ATTEMPT      LOSS  GRAD NORM       LR  TOKENS  SECONDS  TOKENS/S\n"
	       "     1        -  2.000000          -  2.5e-07       -        -         -\n"
	       "     2        -  1.000000          -    0.001       -        -         -\n"
	       "     3        -         -          -        -       -        -         -\n");
	(void)state;
}

static int show_loss(const json_t *steps)
{
	return wlb_show_loss(NULL, steps);
}

/* The hook of a trainer that logs nothing tells of its steps alone. */
static void steps_without_a_loss_have_no_curve(void **state)
{
	expect(show_loss,
	       json_pack("[{s:i}, {s:i, s:f}, {s:i, s:s}]", "step", 1, "step", 2, "loss", 2.0, "step", 3, "loss",
	                 "nan"),
	       "");
	json_t *two = json_pack("[{s:i, s:f}, {s:i, s:f}]", "step", 1, "loss", 3.0, "step", 2, "loss", 2.0);
	char *text = printed(show_loss, two);
	assert_non_null(strstr(text, "\nLoss\n"));
	free(text);
	json_decref(two);
	(void)state;
}

/* Puts the run's times in UTC for what a section prints of it. */
static json_t *run_until(const char *ended_at, const char *list, json_t *entry)
{
	setenv("TZ", "UTC0", 1);
	return json_pack("{s:s, s:s, s:[o]}", "started_at", "2026-11-20T23:00:00Z", "ended_at", ended_at, list, entry);
}

static void times_of_a_run_of_several_days_have_the_day(void **state)
{
	static const char one_day[] = "2026-11-20T23:59:59Z", two_days[] = "2026-11-21T00:00:01Z";
	static const char at[] = "2026-11-20T23:30:00Z";
	expect(wlb_show_events, run_until(one_day, "events", json_pack("{s:s, s:s}", "time", at, "kind", "saved")),
	       "\nEvents\n  23:30:00  saved  \n");
	expect(wlb_show_events, run_until(two_days, "events", json_pack("{s:s, s:s}", "time", at, "kind", "saved")),
	       "\nEvents\n  11-20 23:30:00  saved  \n");
	expect(wlb_show_checkpoints, run_until(two_days, "checkpoints", json_pack("{s:s, s:i}", "time", at, "step", 7)),
	       "\nCheckpoints\n"
	       "  TIME            ATTEMPT  STEP  SIZE  DURABLE IN  STALL  PATH\n"
	       "  11-20 23:30:00        -     7     -           -      -  -\n");
	expect(wlb_show_checkpoints,
	       run_until(one_day, "checkpoints",
	                 json_pack("{s:s, s:i, s:I, s:f, s:f}", "time", at, "step", 7, "bytes", (json_int_t)14000000,
	                           "duration_s", 12.4, "stall_s", 0.034)),
	       "\nCheckpoints\n"
	       "  TIME      ATTEMPT  STEP     SIZE  DURABLE IN    STALL  PATH\n"
	       "  23:30:00        -     7  14.0 MB        12 s  34.0 ms  -\n");
	expect(wlb_show_faults, run_until(two_days, "faults", json_pack("{s:s, s:s}", "time", at, "kind", "hang")),
	       "\nFaults\n"
	       "  TIME            ATTEMPT  FAULT  NODE  RANK  STEP  ROLE         DETAIL\n"
	       "  11-20 23:30:00        -  hang   -        -     -  consequence  \n");
	expect(wlb_show_verdicts,
	       run_until(two_days, "verdicts", json_pack("{s:s, s:s}", "found_at", at, "kind", "hang")),
	       "\nVerdicts\n"
	       "  TIME            ATTEMPT  KIND  WHERE  STATE  COST  ACTION\n"
	       "  11-20 23:30:00        -  hang  -      -         -  -\n");
	expect(wlb_show_attempts,
	       run_until(two_days, "attempts", json_pack("{s:i, s:s}", "attempt", 1, "started_at", at)),
	       "\nAttempts\n"
	       "  ATTEMPT  STATE  NODES  LAYOUT  FROM STEP  STEPS         STARTED  ELAPSED  EXIT  REASON\n"
	       "        1  -      -      -               -      -  11-20 23:30:00        -     -  \n");
	(void)state;
}

/* Of the save that the hook alone has seen nobody has said that the run can go on from it. */
static void checkpoints_have_their_costs_and_who_has_seen_them(void **state)
{
	static const char at[] = "2026-11-20T23:30:00Z";
	json_t *run = run_until("2026-11-20T23:59:59Z", "checkpoints",
	                        json_pack("{s:s, s:i, s:s, s:i, s:f, s:f, s:b}", "time", at, "step", 7, "path", "/c",
	                                  "bytes", 2500000, "duration_s", 12.25, "stall_s", 0.25, "is_seen", 0));
	json_array_append_new(json_object_get(run, "checkpoints"),
	                      json_pack("{s:s, s:n, s:s, s:b}", "time", at, "step", "path", "/d", "is_seen", 1));
	expect(wlb_show_checkpoints, run,
	       "\nCheckpoints\n"
	       "  TIME      ATTEMPT  STEP    SIZE  DURABLE IN   STALL  PATH\n"
	       "  23:30:00        -     7  2.5 MB        12 s  0.25 s  /c\n"
	       "  23:30:00        -     -       -           -       -  /d (seen by the hook)\n");
	(void)state;
}

static void faults_have_the_kinds_of_the_api(void **state)
{
	expect(wlb_show_faults,
	       run_until("2026-11-20T23:59:59Z", "faults",
	                 json_pack("{s:s, s:s, s:i, s:b}", "time", "2026-11-20T23:30:00Z", "kind", "step_failed",
	                           "step", 67, "cause", 1)),
	       "\nFaults\n"
	       "  TIME      ATTEMPT  FAULT        NODE  RANK  STEP  ROLE   DETAIL\n"
	       "  23:30:00        -  step_failed  -        -    67  cause  \n");
	(void)state;
}

static void a_run_that_goes_on_is_of_the_days_until_now(void **state)
{
	setenv("TZ", "UTC0", 1);
	expect(wlb_show_events,
	       json_pack("{s:[{s:s}], s:[{s:s, s:s}]}", "attempts", "created_at", "2020-11-20T10:00:00Z", "events",
	                 "time", "2020-11-20T23:30:00Z", "kind", "saved"),
	       "\nEvents\n  11-20 23:30:00  saved  \n");
	(void)state;
}

/* Returns a run with `count` entries of the list, with its newest steps, of which the coordinator has left_out more. */
static json_t *run_with(const char *list, int count, int left_out)
{
	json_t *entries = json_array();
	for (int i = 0; i < count; i++)
		assert_int_equal(json_array_append_new(entries, json_pack("{s:i, s:s}", "step", i, "kind", "hang")), 0);
	return json_pack("{s:s, s:o, s:{s:i}}", "run_id", "12", list, entries, "left_out", list, left_out);
}

static void expect_line(int (*section)(const json_t *), json_t *run, const char *line)
{
	char *text = printed(section, run);
	if (strstr(text, line) == NULL)
		fail_msg("no '%s' in: %s", line, text);
	free(text);
	json_decref(run);
}

static void lists_say_how_many_are_stored(void **state)
{
	expect_line(wlb_show_checkpoints, run_with("checkpoints", 1000, 2000), "\nCheckpoints (the last 5 of 3000)\n");
	expect_line(wlb_show_checkpoints, run_with("checkpoints", 7, 0), "\nCheckpoints (the last 5 of 7)\n");
	expect_line(wlb_show_checkpoints, run_with("checkpoints", 5, 0), "\nCheckpoints\n");
	expect_line(wlb_show_events, run_with("events", 1000, 2000), "\nEvents (the last 20 of 3000)\n");
	expect_line(wlb_show_attempts, run_with("attempts", 3, 2000), "\n  2000 older ones are not listed\n");
	expect_line(wlb_show_faults, run_with("faults", 3, 2000), "\n  2000 older ones are not listed\n");
	expect_line(wlb_show_verdicts, run_with("verdicts", 200, 2000), "\n  2180 more: wlb faults 12\n");
	(void)state;
}

/* Returns a run with an attempt on four nodes, whose step took so many times as long as was planned. */
static json_t *run_planned_for(int dp, int idle_ranks, double times)
{
	json_t *plan = json_pack("{s:s, s:{s:i, s:i, s:i, s:i}, s:i, s:f}", "machine", "CPU", "layout", "tp", 2, "cp",
	                         1, "pp", 1, "dp", dp, "idle_ranks", idle_ranks, "step_s", 0.5);
	return json_pack("{s:[{s:i, s:[s, s, s, s], s:f, s:o}]}", "attempts", "attempt", 1, "nodes", "n1", "n2", "n3",
	                 "n4", "step_s", times * 0.5, "plan", plan);
}

static void a_wrong_prediction_asks_for_a_calibration_with_the_ranks_of_the_attempt(void **state)
{
	expect_line(wlb_show_why_layout, run_planned_for(6, 0, 2.0),
	            ": run `srun --mpi=pmix --ntasks-per-node=3 wlb calibrate` in a job on these nodes");
	expect_line(wlb_show_why_layout, run_planned_for(7, 2, 2.0), " --ntasks-per-node=4 wlb calibrate`");
	json_t *met = run_planned_for(6, 0, 1.0);
	char *text = printed(wlb_show_why_layout, met);
	assert_null(strstr(text, "calibrate"));
	free(text);
	json_decref(met);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_learning_rates_have_their_digits),
		cmocka_unit_test(steps_without_a_loss_have_no_curve),
		cmocka_unit_test(times_of_a_run_of_several_days_have_the_day),
		cmocka_unit_test(checkpoints_have_their_costs_and_who_has_seen_them),
		cmocka_unit_test(faults_have_the_kinds_of_the_api),
		cmocka_unit_test(a_run_that_goes_on_is_of_the_days_until_now),
		cmocka_unit_test(lists_say_how_many_are_stored),
		cmocka_unit_test(a_wrong_prediction_asks_for_a_calibration_with_the_ranks_of_the_attempt),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
