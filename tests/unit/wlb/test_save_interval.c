/* The line of `wlb show` about the interval of saves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "coordinator/wlb/history/save_interval.h"

static void expect(const char *known, const char *expected)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	json_t *run = json_pack("{s:o*}", "save_interval", json_loads(known, JSON_DECODE_ANY, NULL));
	assert_non_null(run);
	wlb_show_save_interval(run, out);
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
	json_decref(run);
}

static void the_line_says_by_what_it_is_found(void **state)
{
	(void)state;
	expect("{\"interval_s\":1860,\"interval_steps\":3050,\"now_s\":720,\"stall_s\":0.4,\"faults\":5,\"node_hours\":"
	       "210.2}",
	       "  checkpoints: every 31 min (3050 steps) loses least, by 5 faults in 210 node-hours and a stall of 0.4 "
	       "s; now every "
	       "12 min\n");
	expect("{\"interval_s\":7300,\"interval_steps\":null,\"now_s\":null,\"stall_s\":31.4,\"faults\":50,\"node_"
	       "hours\":1e5}",
	       "  checkpoints: every 2.0 h loses least, by 50 faults in 100000 node-hours and a stall of 31 s\n");
}

static void nothing_is_said_where_too_little_is_known(void **state)
{
	(void)state;
	expect("null", "");
	expect("", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_line_says_by_what_it_is_found),
		cmocka_unit_test(nothing_is_said_where_too_little_is_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
