#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/wlb/history/comparison.h"
#include "coordinator/wlb/history/curve.h"
#include "coordinator/wlb/history/differences.h"

static struct wlb_sample samples[] = {{10, 8}, {20, NAN}, {30, 4}, {30, 5}, {50, 3}, {60, INFINITY}};
static const struct wlb_series curve = {.points = samples, .count = 6};

static void values_between_samples(void **state)
{
	(void)state;
	assert_float_equal(wlb_curve_at(&curve, 10), 8, 0);
	assert_float_equal(wlb_curve_at(&curve, 15), 7, 1e-12);
	assert_float_equal(wlb_curve_at(&curve, 30), 4, 0);
	assert_float_equal(wlb_curve_at(&curve, 40), 4, 1e-12);
	assert_float_equal(wlb_curve_at(&curve, 50), 3, 0);
	assert_true(isnan(wlb_curve_at(&curve, 9.9)) && isnan(wlb_curve_at(&curve, 50.1)) &&
	            isnan(wlb_curve_at(&curve, NAN)));
	assert_true(isnan(wlb_curve_at(&(struct wlb_series){0}, 1)));
}

static void means_and_ends(void **state)
{
	(void)state;
	assert_float_equal(wlb_curve_mean(&curve, 10, 50), 4, 1e-12);
	assert_float_equal(wlb_curve_mean(&curve, 0, 10), 8, 0);
	assert_true(isnan(wlb_curve_mean(&curve, 50, 70)));
	assert_float_equal(wlb_curve_end(&curve), 50, 0);
	assert_true(isnan(wlb_curve_end(&(struct wlb_series){0})));
}

static void assert_differences(const char *settings, const char *expected)
{
	json_t *read = json_loads(settings, 0, NULL), *found = wlb_settings_that_differ(read);
	assert_non_null(read);
	char *text = json_dumps(found, JSON_COMPACT);
	assert_string_equal(text, expected);
	free(text);
	json_decref(found);
	json_decref(read);
}

static void settings_that_differ(void **state)
{
	(void)state;
	assert_differences("[{\"a\":1,\"b\":{\"c\":[1,2],\"d\":\"x\"}},{\"a\":1.0,\"b\":{\"c\":[2,1],\"d\":\"x\"}}]",
	                   "[{\"name\":\"b.c\",\"values\":[[1,2],[2,1]]}]");
	assert_differences("[{\"a\":null},{},{\"a\":0}]", "[{\"name\":\"a\",\"values\":[null,null,0]}]");
	assert_differences("[{\"a\":{\"b\":1}},{\"a\":2}]",
	                   "[{\"name\":\"a.b\",\"values\":[1,null]},{\"name\":\"a\",\"values\":[null,2]}]");
	assert_differences("[{},{}]", "[]");
}

static void assert_common(const char *first, const char *other, bool by_steps, bool by_tokens, double common)
{
	struct wlb_comparison comparison = {.count = 2};
	comparison.runs[0] = (struct wlb_compared){json_object(), json_loads(first, 0, NULL), {0}};
	comparison.runs[1] = (struct wlb_compared){json_object(), json_loads(other, 0, NULL), {0}};
	assert_int_equal(wlb_comparison_prepare(&comparison, by_steps), 0);
	assert_int_equal(comparison.by_tokens, by_tokens);
	assert_true(isnan(common) ? isnan(comparison.common) : comparison.common == common);
	wlb_comparison_free(&comparison);
}

static void where_runs_are_compared(void **state)
{
	static const char told[] =
		"[{\"step\":1,\"tokens_so_far\":8,\"loss\":3},{\"step\":9,\"tokens_so_far\":72,\"loss\":2}]";
	static const char shorter[] =
		"[{\"step\":1,\"tokens_so_far\":30,\"loss\":3},{\"step\":2,\"tokens_so_far\":60,\"loss\":2}]";
	static const char untold[] = "[{\"step\":7,\"tokens_so_far\":null,\"loss\":3}]";
	(void)state;
	assert_common(told, shorter, false, true, 60);
	assert_common(shorter, told, true, false, 2);
	assert_common(untold, told, false, false, 7);
	assert_common(told, "[]", false, true, NAN);
	assert_common("[]", told, false, true, NAN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_between_samples),
		cmocka_unit_test(means_and_ends),
		cmocka_unit_test(settings_that_differ),
		cmocka_unit_test(where_runs_are_compared),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
