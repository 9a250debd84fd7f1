#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "spank/step_layout.h"

static void a_step_of_the_layouts_size_is_an_attempt(void **state)
{
	(void)state;
	char *entries[] = {"WLB_TPX=7", "WLB_TP=2", "WLB_CP=3", "WLB_PP=4", "WLB_DP=5", NULL};
	struct wlb_layout layout;
	assert_true(wlb_step_layout(entries, 120, &layout));
	assert_true(layout.tp == 2 && layout.cp == 3 && layout.pp == 4 && layout.dp == 5);
	assert_false(wlb_step_layout(entries, 119, &layout));
	assert_false(wlb_step_layout(entries, 0, &layout));
	char *both[] = {"WLB_TP=9", "SLURM_WLB_TP=2", "WLB_CP=1", "WLB_PP=1", "WLB_DP=1", NULL};
	assert_true(wlb_step_layout(both, 2, &layout));
	both[4] = NULL;
	assert_false(wlb_step_layout(both, 2, &layout));
}

static void reads_ways(void **state)
{
	(void)state;
	static const struct {
		char *entry;
		int ways;
	} cases[] = {
		{"WLB_TP=4", 4},  {"WLB_TP=999999", 999999}, {"WLB_TP=1000000", 0}, {"WLB_TP=0", 0},
		{"WLB_TP=-1", 0}, {"WLB_TP=2x", 0},          {"WLB_TP=", 0},        {"WLB_TP=99999999999999999999", 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *entries[] = {cases[i].entry, "WLB_CP=1", "WLB_PP=1", "WLB_DP=1", NULL};
		struct wlb_layout layout;
		assert_int_equal(wlb_step_layout(entries, cases[i].ways > 0 ? cases[i].ways : 1, &layout),
		                 cases[i].ways > 0);
		assert_int_equal(layout.tp, cases[i].ways);
	}
}

/* "4 4 3" for what was read, the message where it was refused. */
static const char *read_nodes(const char *value, int tasks)
{
	static char text[sizeof(((struct wlb_error *)0)->message)];
	char entry[256];
	char *entries[] = {"TASKS=1", entry, NULL};
	int *tasks_on;
	struct wlb_error error = {0};
	snprintf(entry, sizeof(entry), "TASKS_PER_NODE=%s", value);
	text[0] = '\0';
	int count = wlb_step_nodes(entries, "TASKS_PER_NODE", tasks, &tasks_on, &error);
	if (count < 0) {
		snprintf(text, sizeof(text), "%s", error.message);
		return text;
	}
	for (int i = 0; i < count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%d", i > 0 ? " " : "", tasks_on[i]);
	free(tasks_on);
	return text;
}

static void reads_the_tasks_of_each_node(void **state)
{
	(void)state;
	assert_string_equal(read_nodes("1", 1), "1");
	assert_string_equal(read_nodes("4(x2),3", 11), "4 4 3");
	assert_string_equal(read_nodes("6,1", 7), "6 1");
	assert_string_equal(read_nodes("1(x3),2,1(x2)", 7), "1 1 1 2 1 1");
}

static void refuses_what_names_other_tasks(void **state)
{
	(void)state;
	static const char *const values[] = {
		"",
		"7",
		"6,3",
		"6,",
		",8",
		"x",
		"6,1x",
		"8x",
		"3(x2)",
		"3(x2",
		"4(y2)",
		"4(x0),8",
		"0,8",
		"-1,9",
		"4(x2)4",
		"4;4",
		"1(x9)",
		"8 ",
		"8(x999999999999)",
		"99999999999999999999",
	};
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		char expected[160];
		snprintf(expected, sizeof(expected),
		         "TASKS_PER_NODE is '%s': it must name the 8 tasks of the step, such as 4(x2),3", values[i]);
		assert_string_equal(read_nodes(values[i], 8), expected);
	}
	char *entries[] = {NULL};
	int *tasks_on;
	struct wlb_error error = {0};
	assert_int_equal(wlb_step_nodes(entries, "TASKS_PER_NODE", 8, &tasks_on, &error), -1);
	assert_non_null(strstr(error.message, "Slurm does not set TASKS_PER_NODE"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_of_the_layouts_size_is_an_attempt),
		cmocka_unit_test(reads_ways),
		cmocka_unit_test(reads_the_tasks_of_each_node),
		cmocka_unit_test(refuses_what_names_other_tasks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
