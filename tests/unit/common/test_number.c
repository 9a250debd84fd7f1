#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/number.h"

static void whole_numbers_are_read(void **state)
{
	int64_t number = 0;
	assert_int_equal(wlb_number_parse("n", "-3", -3, 8, &number, NULL), 0);
	assert_int_equal(number, -3);
	assert_int_equal(wlb_number_parse("n", "9223372036854775807", 0, INT64_MAX, &number, NULL), 0);
	assert_true(number == INT64_MAX);
	(void)state;
}

static void what_is_no_whole_number_in_bounds_is_refused(void **state)
{
	static const char *const wrong[] = {"", "x", "1x", "1.5", "1e3", "0", "9", "99999999999999999999"};
	struct wlb_error error;
	int64_t number = 5;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(wlb_number_parse("--n", wrong[i], 1, 8, &number, &error), -1);
	assert_int_equal(number, 5);
	assert_string_equal(error.message, "--n '99999999999999999999': must be a whole number from 1 to 8");
	(void)state;
}

static void real_numbers_are_read(void **state)
{
	struct wlb_error error;
	double number = 0.0;
	assert_int_equal(wlb_real_parse("x", "2.5e-1", 0.25, 64.0, &number, NULL), 0);
	assert_true(number == 0.25);
	assert_int_equal(wlb_real_parse("x", "64", 0.25, 64.0, &number, NULL), 0);
	static const char *const wrong[] = {"", "x", "1x", "nan", "inf", "0.2", "64.1"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(wlb_real_parse("--x", wrong[i], 0.25, 64.0, &number, &error), -1);
	assert_true(number == 64.0);
	assert_string_equal(error.message, "--x '64.1': must be a number from 0.25 to 64");
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_numbers_are_read),
		cmocka_unit_test(what_is_no_whole_number_in_bounds_is_refused),
		cmocka_unit_test(real_numbers_are_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
