#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/wlb/history/since.h"

static const time_t now = 1795217405; /* 2026-11-20T23:30:05Z */

static time_t since(const char *text)
{
	time_t found = 0;
	struct wlb_error error;
	if (wlb_since_parse(text, now, &found, &error) != 0)
		fail_msg("%s", error.message);
	return found;
}

static void how_long_ago(void **state)
{
	assert_int_equal(since("90s"), now - 90);
	assert_int_equal(since("45m"), now - 45 * 60);
	assert_int_equal(since("12h"), now - 12 * 3600);
	assert_int_equal(since("3d"), now - 3 * 86400);
	(void)state;
}

static void local_times(void **state)
{
	setenv("TZ", "CET-1", 1);
	tzset();
	assert_int_equal(since("2026-11-21"), now - 1805);
	assert_int_equal(since("2026-11-21T00:10"), now - 1205);
	assert_int_equal(since("2026-11-21 00:10:05"), now - 1200);
	assert_int_equal(since("00:20"), now - 605); /* of the local day, which is the 21st */
	assert_int_equal(since("00:30"), now - 5);
	(void)state;
}

/* It is 00:30 of the 21st. */
static void a_time_of_day_to_come_is_of_the_day_before(void **state)
{
	setenv("TZ", "CET-1", 1);
	tzset();
	assert_int_equal(since("23:30"), now - 3605);
	assert_int_equal(since("00:31"), now - 5 - 86400 + 60);
	(void)state;
}

static void what_is_no_time_is_refused(void **state)
{
	static const char *const wrong[] = {"", "soon", "12", "h", "-3h", "3 h", "3w", "9999999999s", "999999999d",
	                                    "2026-13-01", "25:00", "2026-11-20x", "1969-01-01",
	                                    /* which mktime takes for March 3, and for 03:30 or 01:30 */
	                                    "2026-02-31", "2026-03-29T02:30",
	                                    /* to come */
	                                    "2026-11-22", "2026-11-21T00:31", "2027-01-01 10:00:00"};
	struct wlb_error error;
	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		time_t found = 7;
		assert_int_equal(wlb_since_parse(wrong[i], now, &found, &error), -1);
		assert_int_equal(found, 7);
		assert_non_null(strstr(error.message, "such as 45m"));
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(how_long_ago),
		cmocka_unit_test(local_times),
		cmocka_unit_test(a_time_of_day_to_come_is_of_the_day_before),
		cmocka_unit_test(what_is_no_time_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
