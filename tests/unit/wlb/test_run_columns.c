/* The columns of `wlb runs`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/wlb/history/run_columns.h"

/* Puts the next name of a list for people into `name`: without what is in parentheses. Returns the rest. */
static const char *next_name(const char *list, char name[64])
{
	size_t length = strspn(list, ", ");
	list += length;
	if (strncmp(list, "and ", 4) == 0 || strncmp(list, "or ", 3) == 0)
		list = strchr(list, ' ') + 1;
	length = strcspn(list, ", ");
	snprintf(name, 64, "%.*s", (int)length, list);
	list += length;
	return strncmp(list, " (", 2) == 0 ? strchr(list, ')') + 1 : list;
}

static void help_lists_every_column(void **state)
{
	struct wlb_run_columns all, one;
	struct wlb_error error;
	char name[64];
	int count = 0;
	(void)state;
	assert_int_equal(wlb_run_columns_choose(NULL, true, &all, &error), 0);
	for (const char *list = WLB_RUN_COLUMNS; *list != '\0'; count++) {
		list = next_name(list, name);
		assert_int_equal(wlb_run_columns_choose(name, false, &one, &error), 0);
		assert_int_equal(one.columns[0], all.columns[count]);
	}
	assert_int_equal(count, all.count);
}

static void help_lists_every_order(void **state)
{
	struct wlb_error error;
	char name[64], order[80];
	int count = 0, orders = 0;
	(void)state;
	for (const char *list = WLB_RUN_ORDERS; *list != '\0'; count++) {
		list = next_name(list, name);
		assert_int_equal(wlb_run_order_check(name, &error), 0);
		snprintf(order, sizeof(order), "-%s", name);
		assert_int_equal(wlb_run_order_check(order, &error), 0);
	}
	for (const char *list = WLB_RUN_COLUMNS; *list != '\0';) {
		list = next_name(list, name);
		orders += wlb_run_order_check(name, &error) == 0;
	}
	assert_int_equal(orders, count);
}

static void wrong_names_are_refused(void **state)
{
	static const char *const wrong[] = {"",     "run,",      ",run", "run,,state",   "Run",
	                                    "runs", "run state", "-run", "run,state,run"};
	struct wlb_run_columns chosen;
	struct wlb_error error;
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(wlb_run_columns_choose(wrong[i], false, &chosen, &error), -1);
	assert_string_equal(error.message, "--columns: 'run' is given twice");
	assert_int_equal(wlb_run_columns_choose("state,steps", false, &chosen, &error), -1);
	assert_string_equal(error.message,
	                    "--columns: 'steps' must be one of the columns that 'wlb runs --help' lists");
	assert_int_equal(wlb_run_order_check("--loss", &error), -1);
	assert_int_equal(wlb_run_order_check("layout", &error), -1);
	assert_int_equal(wlb_run_order_check("-", &error), -1);
}

/* Returns what is printed of the run, which the caller frees. */
static char *printed(const char *columns, const char *run)
{
	char *text = NULL;
	size_t size;
	struct wlb_run_columns chosen;
	struct wlb_error error;
	json_t *runs = json_pack("[o]", json_loads(run, 0, NULL));
	FILE *kept = stdout;
	assert_int_equal(wlb_run_columns_choose(columns, false, &chosen, &error), 0);
	stdout = open_memstream(&text, &size);
	assert_int_equal(wlb_run_columns_print(&chosen, runs, 1), 0);
	fclose(stdout);
	stdout = kept;
	json_decref(runs);
	return text;
}

static void expect(const char *columns, const char *run, const char *expected)
{
	char *text = printed(columns, run);
	const char *row = strchr(text, '\n') + 1;
	assert_string_equal(row, expected);
	free(text);
}

static void cells(void **state)
{
	(void)state;
	setenv("TZ", "UTC0", 1);
	expect(NULL,
	       "{\"run_id\":\"17\",\"alias\":\"15_2\",\"job_name\":\"j\",\"user\":\"u\",\"state\":\"running\","
	       "\"nodes\":[\"n1\",\"n2\"],"
	       "\"layout\":{\"tp\":1,\"cp\":2,\"pp\":1,\"dp\":4},\"last_step\":7,\"train_iters\":120,\"last_loss\":2.5,"
	       "\"attempts\":3,\"started_at\":\"2026-11-20T10:00:00Z\",\"elapsed_s\":3661.9,\"steps_missing\":2}",
	       "17 (15_2)  j     u     running  n[1-2]  tp=1,cp=2,pp=1,dp=4  7/120 (2 missing)  2.5000         3  "
	       "2026-11-20 10:00:00  1:01:01\n");
	expect(NULL, "{}", "?    -     -     -      -      -          -     -         -  -              -\n");
	expect("step", "{\"step_of_attempt\":9}", "9 of attempt\n");
	expect("memory,mfu,tokens_per_s", "{\"memory_bytes\":3221225472,\"mfu\":0.4644,\"tokens_per_s\":69512.4}",
	       "3.22 GB  46.4 %     69512\n");
	expect("memory,mfu,tokens_per_s", "{\"memory_bytes\":null}", "     -    -         -\n");
	expect("model", "{\"model_type\":\"llama\",\"parameters\":8030000000}", "llama 8.03 G\n");
	expect("model", "{\"model_type\":\"llama\",\"parameters\":1234567}", "llama 1.23 M\n");
	expect("model", "{\"model_path\":\"/models/Qwen3-8B/config.json\"}", "Qwen3-8B\n");
	expect("model", "{\"model_path\":\"config.json\"}", "config.json\n");
	expect("model", "{\"model_path\":\"/config.json\"}", "/config.json\n");
	expect("tags", "{\"tags\":[\"baseline\",\"a/b=1\"]}", "baseline a/b=1\n");
	expect("tags", "{\"tags\":[]}", "-\n");
}

static void fields_are_those_of_the_columns(void **state)
{
	const char *fields[WLB_RUN_FIELDS];
	struct wlb_run_columns chosen;
	struct wlb_error error;
	(void)state;
	assert_int_equal(wlb_run_columns_choose("mfu,run", true, &chosen, &error), 0);
	wlb_run_columns_fields(&chosen, fields);
	assert_string_equal(fields[0], "mfu");
	assert_string_equal(fields[1], "run_id");
	assert_string_equal(fields[2], "alias");
	assert_null(fields[3]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(help_lists_every_column),         cmocka_unit_test(help_lists_every_order),
		cmocka_unit_test(wrong_names_are_refused),         cmocka_unit_test(cells),
		cmocka_unit_test(fields_are_those_of_the_columns),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
