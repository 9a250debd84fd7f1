#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/output/plot_series.h"

#define SERIES(character, ...)                                                                                         \
	{                                                                                                              \
		.points = (struct wlb_sample[]){__VA_ARGS__},                                                          \
		.count = sizeof((struct wlb_sample[]){__VA_ARGS__}) / sizeof(struct wlb_sample), .mark = (character)   \
	}

static void assert_drawn(const struct wlb_series *series, int count, int rows, bool has_colours, const char *expected)
{
	const struct wlb_axis axis = {"tokens", "0", "9"};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	wlb_plot_series(out, series, count, &axis, 10, rows, has_colours);
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
}

static void series_of_other_lengths(void **state)
{
	(void)state;
	const struct wlb_series series[] = {SERIES('A', {0, 4}, {3, 3}, {9, 1}), SERIES('B', {1, 4}, {3, 3}, {4, 2})};
	assert_drawn(series, 2, 4, false,
	             "         4 AB\n"
	             "              *\n"
	             "               B\n"
	             "         1          A\n"
	             "    tokens 0        9\n");
}

static void a_high_beginning(void **state)
{
	(void)state;
	const struct wlb_series series[] = {SERIES('A', {0, 1000}, {5, 2}, {9, 1})};
	assert_drawn(series, 1, 2, false,
	             "         2 A    A\n"
	             "         1          A\n"
	             "    tokens 0        9\n");
}

static void values_in_the_beginning_alone(void **state)
{
	(void)state;
	const struct wlb_series series[] = {SERIES('A', {5, 1}), SERIES('B', {5, 3})};
	assert_drawn(series, 2, 2, false,
	             "         3 B\n"
	             "         1 A\n"
	             "    tokens 0        9\n");
}

static void what_is_not_finite(void **state)
{
	(void)state;
	const struct wlb_series series[] = {SERIES('A', {NAN, 1}, {0, NAN}, {0, INFINITY}), {.mark = 'B'}};
	assert_drawn(series, 2, 4, false, "");
	const struct wlb_series one[] = {SERIES('A', {0, 1}, {4, NAN}, {9, 1})};
	assert_drawn(one, 1, 2, false,
	             "         1 \n"
	             "         1 A        A\n"
	             "    tokens 0        9\n");
}

static void colours(void **state)
{
	(void)state;
	const struct wlb_series series[] = {SERIES('A', {0, 1}, {9, 2}), SERIES('B', {0, 1}, {9, 1})};
	assert_drawn(series, 2, 2, true,
	             "         2          \033[34mA\033[0m\n"
	             "         1 *        \033[31mB\033[0m\n"
	             "    tokens 0        9\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(series_of_other_lengths),
		cmocka_unit_test(a_high_beginning),
		cmocka_unit_test(values_in_the_beginning_alone),
		cmocka_unit_test(what_is_not_finite),
		cmocka_unit_test(colours),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
