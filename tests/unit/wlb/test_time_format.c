#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "coordinator/wlb/output/time_format.h"

static void reads_utc_and_writes_local(void **state)
{
	char text[32];
	(void)state;
	setenv("TZ", "CET-1", 1);
	tzset();
	time_t when = wlb_time_parse("2026-11-20T23:30:05Z");
	assert_int_equal(when, 1795217405);
	wlb_time_format(when, text, sizeof(text));
	assert_string_equal(text, "2026-11-21 00:30:05");
	wlb_time_short(when, false, text, sizeof(text));
	assert_string_equal(text, "00:30:05");
	wlb_time_short(when, true, text, sizeof(text));
	assert_string_equal(text, "11-21 00:30:05");
	assert_true(wlb_time_same_day(when, wlb_time_parse("2026-11-21T22:59:59Z")));
	assert_false(wlb_time_same_day(when, wlb_time_parse("2026-11-21T23:00:00Z")));
	assert_false(wlb_time_same_day(when, wlb_time_parse("2026-11-20T22:59:59Z")));
	assert_false(wlb_time_same_day(when, wlb_time_parse("2025-11-20T23:30:05Z")));
}

static void what_is_no_time_is_a_dash(void **state)
{
	char text[32];
	(void)state;
	assert_int_equal(wlb_time_parse(NULL), -1);
	assert_int_equal(wlb_time_parse("soon"), -1);
	wlb_time_format((time_t)-1, text, sizeof(text));
	assert_string_equal(text, "-");
}

static void durations(void **state)
{
	static const struct {
		long seconds;
		const char *text;
	} known[] = {{-1, "-"}, {0, "0:00"}, {245, "4:05"}, {7445, "2:04:05"}, {93845, "1-02:04:05"}};
	char text[32];
	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		wlb_duration_format(known[i].seconds, text, sizeof(text));
		assert_string_equal(text, known[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_utc_and_writes_local),
		cmocka_unit_test(what_is_no_time_is_a_dash),
		cmocka_unit_test(durations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
