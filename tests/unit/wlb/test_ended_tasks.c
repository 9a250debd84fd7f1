/* Which tasks have ended badly, of a step that goes on without them. */
#include "coordinator/wlb/run/rules/ended_tasks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/wlb/run/rules/first_exit.h"

static void all_tasks_are_counted_once(void **state)
{
	struct wlb_ended_tasks ended;
	(void)state;
	wlb_ended_tasks_begin(&ended, 130);
	wlb_ended_tasks_note(&ended, "0-63,65,66-99: Killed");
	wlb_ended_tasks_note(&ended, "65");
	wlb_ended_tasks_note_range(&ended, 100, 1000);
	assert_true(wlb_ended_tasks_has_other(&ended));
	wlb_ended_tasks_note(&ended, "64,");
	assert_false(wlb_ended_tasks_has_other(&ended));
	wlb_ended_tasks_free(&ended);
	/* Out of memory, or not begun: nothing is known. */
	wlb_ended_tasks_note(&ended, "1");
	assert_false(wlb_ended_tasks_has_other(&ended));
}

static void odd_lists_are_taken(void **state)
{
	static const char *const lists[] = {"",  "x", "5-", "5-3", "99999999999999999999", "4-99999999999999999999",
	                                    "-1"};
	struct wlb_ended_tasks ended;
	(void)state;
	wlb_ended_tasks_begin(&ended, 4);
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		wlb_ended_tasks_note(&ended, lists[i]);
	for (int task = 0; task < 3; task++)
		wlb_ended_tasks_note_range(&ended, task, 1);
	assert_true(wlb_ended_tasks_has_other(&ended));
	wlb_ended_tasks_note(&ended, "2-99999999999999999999");
	assert_false(wlb_ended_tasks_has_other(&ended));
	wlb_ended_tasks_free(&ended);
}

/* Also those after the first, whose line is the one that counts otherwise. */
static void lines_of_srun_name_them(void **state)
{
	static const char first[] = "srun: error: n1: task 1: Exited with exit code 3\n";
	static const char more[] = "srun: error: n[1-2]: tasks 0,2: Killed\nsrun: error: n2: task 3: Bored\n";
	struct wlb_first_exit_scan scan = {.length = 0};
	(void)state;
	wlb_ended_tasks_begin(&scan.ended, 4);
	wlb_first_exit_feed(&scan, first, strlen(first));
	wlb_first_exit_feed(&scan, more, strlen(more));
	assert_int_equal(scan.first.rank, 1);
	assert_true(wlb_ended_tasks_has_other(&scan.ended));
	wlb_ended_tasks_note(&scan.ended, "3");
	assert_false(wlb_ended_tasks_has_other(&scan.ended));
	wlb_ended_tasks_free(&scan.ended);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_tasks_are_counted_once),
		cmocka_unit_test(odd_lists_are_taken),
		cmocka_unit_test(lines_of_srun_name_them),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
