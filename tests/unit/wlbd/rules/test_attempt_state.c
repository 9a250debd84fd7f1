#include "coordinator/wlbd/rules/attempt_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { NOW_MS = 100000, BEFORE_MS = NOW_MS - WLBD_KILL_AFTER_MS };

static void the_transitions_are_those_of_the_header(void **state)
{
	static const struct {
		enum wlbd_attempt_state from, after_order, after_kill, after_end;
	} rows[] = {
		{WLBD_ATTEMPT_RUNNING, WLBD_ATTEMPT_ORDERED, WLBD_ATTEMPT_RUNNING, WLBD_ATTEMPT_ENDED},
		{WLBD_ATTEMPT_ORDERED, WLBD_ATTEMPT_ORDERED, WLBD_ATTEMPT_KILLED, WLBD_ATTEMPT_ENDED_ORDERED},
		{WLBD_ATTEMPT_KILLED, WLBD_ATTEMPT_KILLED, WLBD_ATTEMPT_KILLED, WLBD_ATTEMPT_ENDED_ORDERED},
		{WLBD_ATTEMPT_ENDED, WLBD_ATTEMPT_ENDED_ORDERED, WLBD_ATTEMPT_ENDED, WLBD_ATTEMPT_ENDED},
		{WLBD_ATTEMPT_ENDED_ORDERED, WLBD_ATTEMPT_ENDED_ORDERED, WLBD_ATTEMPT_ENDED_ORDERED,
	         WLBD_ATTEMPT_ENDED_ORDERED},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct wlbd_attempt_life order = {.state = rows[i].from, .since_ms = BEFORE_MS};
		struct wlbd_attempt_life kill = order, end = order;
		assert_int_equal(wlbd_attempt_order(&order, NOW_MS), rows[i].after_order != rows[i].from);
		assert_int_equal(wlbd_attempt_kill(&kill, NOW_MS), rows[i].after_kill != rows[i].from);
		assert_int_equal(wlbd_attempt_end(&end, 1, 0, NOW_MS), rows[i].after_end != rows[i].from);
		assert_int_equal(order.state, rows[i].after_order);
		assert_int_equal(kill.state, rows[i].after_kill);
		assert_int_equal(end.state, rows[i].after_end);
	}
}

static void a_step_is_killed_five_seconds_after_the_order(void **state)
{
	struct wlbd_attempt_life life = {0};
	(void)state;
	assert_true(wlbd_attempt_order(&life, NOW_MS));
	assert_false(wlbd_attempt_order(&life, NOW_MS + 1000)); /* does not begin the time anew */
	assert_false(wlbd_attempt_kill(&life, NOW_MS + WLBD_KILL_AFTER_MS - 1));
	assert_true(wlbd_attempt_kill(&life, NOW_MS + WLBD_KILL_AFTER_MS));
	assert_false(wlbd_attempt_kill(&life, NOW_MS + 2 * WLBD_KILL_AFTER_MS)); /* once */
	assert_true(wlbd_attempt_is_ordered(&life));
	assert_false(wlbd_attempt_has_ended(&life));
}

static void a_kill_that_failed_is_repeated_with_growing_pauses(void **state)
{
	struct wlbd_attempt_life life = {0};
	int64_t at_ms = NOW_MS;
	(void)state;
	assert_false(wlbd_attempt_kill_failed(&life, at_ms));
	wlbd_attempt_order(&life, at_ms);
	for (int failed = 0; failed < 8; failed++) {
		int64_t pause_ms = (int64_t)WLBD_KILL_AFTER_MS << (failed < 4 ? failed : 4);
		assert_false(wlbd_attempt_kill(&life, at_ms + pause_ms - 1));
		at_ms += pause_ms;
		assert_true(wlbd_attempt_kill(&life, at_ms));
		assert_false(wlbd_attempt_kill(&life, at_ms + 100 * pause_ms)); /* one at a time */
		assert_true(wlbd_attempt_kill_failed(&life, at_ms));
	}
	wlbd_attempt_end(&life, 137, 0, at_ms);
	assert_false(wlbd_attempt_kill_failed(&life, at_ms)); /* it ended meanwhile */
	assert_true(wlbd_attempt_has_ended(&life));
}

static void what_rank_0_recorded_ends_no_step(void **state)
{
	struct wlbd_attempt_life life = {0};
	(void)state;
	assert_false(wlbd_attempt_end_is_known(&life));
	assert_true(wlbd_attempt_record_end(&life, 0));
	assert_true(wlbd_attempt_end_is_known(&life));
	assert_false(wlbd_attempt_has_ended(&life));
	assert_false(wlbd_attempt_record_end(&life, 1));
	assert_true(wlbd_attempt_order(&life, NOW_MS)); /* a node was lost meanwhile */
	assert_true(wlbd_attempt_kill(&life, NOW_MS + WLBD_KILL_AFTER_MS));
	assert_true(wlbd_attempt_end(&life, 137, 0, NOW_MS + WLBD_KILL_AFTER_MS));
	assert_int_equal(life.exit_code, 0); /* which says more than the end of a step that was killed */
}

static void an_attempt_is_forgotten_a_minute_after_its_end(void **state)
{
	struct wlbd_attempt_life life = {0};
	(void)state;
	assert_false(wlbd_attempt_ended_long_ago(&life, NOW_MS));
	wlbd_attempt_order(&life, NOW_MS - WLBD_ENDED_KEPT_MS);
	assert_false(wlbd_attempt_ended_long_ago(&life, NOW_MS));
	assert_true(wlbd_attempt_end(&life, 137, 9, NOW_MS));
	assert_false(wlbd_attempt_ended_long_ago(&life, NOW_MS + WLBD_ENDED_KEPT_MS - 1));
	assert_true(wlbd_attempt_ended_long_ago(&life, NOW_MS + WLBD_ENDED_KEPT_MS));
}

static void the_first_word_about_the_end_counts(void **state)
{
	struct wlbd_attempt_life life = {0};
	(void)state;
	assert_true(wlbd_attempt_end(&life, 137, 9, NOW_MS));
	assert_false(wlbd_attempt_is_ordered(&life));
	assert_false(wlbd_attempt_end(&life, 0, 0, NOW_MS + 1));
	assert_int_equal(life.exit_code, 137);
	assert_int_equal(life.srun_signal, 9);
	assert_true(wlbd_attempt_order(&life, NOW_MS + 1000)); /* for processes that still report */
	assert_true(wlbd_attempt_is_ordered(&life));
	assert_true(wlbd_attempt_has_ended(&life));
	assert_int_equal(life.since_ms, NOW_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_transitions_are_those_of_the_header),
		cmocka_unit_test(a_step_is_killed_five_seconds_after_the_order),
		cmocka_unit_test(a_kill_that_failed_is_repeated_with_growing_pauses),
		cmocka_unit_test(what_rank_0_recorded_ends_no_step),
		cmocka_unit_test(an_attempt_is_forgotten_a_minute_after_its_end),
		cmocka_unit_test(the_first_word_about_the_end_counts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
