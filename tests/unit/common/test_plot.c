#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/output/plot.h"

static char *drawn(const struct wlb_point *points, int count, const int64_t *marks, int mark_count, bool blocks)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	wlb_plot(out, points, count, marks, mark_count, 4, 2, blocks);
	fclose(out);
	return text;
}

static void a_falling_curve(void **state)
{
	const struct wlb_point points[] = {{1, 4}, {2, 3}, {3, 2}, {4, 1}};
	(void)state;
	char *text = drawn(points, 4, (const int64_t[]){3, 99}, 2, false);
	assert_string_equal(text, "         4 #.  \n"
	                          "         1 ##..\n"
	                          "     fault   ^ \n"
	                          "      step 1  4\n");
	free(text);
}

static void blocks_show_eighths(void **state)
{
	const struct wlb_point points[] = {{1, 0}, {2, 0.5}, {3, NAN}, {4, 1}};
	(void)state;
	char *text = drawn(points, 4, NULL, 0, true);
	assert_string_equal(text, "         1  ▁ █\n"
	                          "         0 ▁█ █\n"
	                          "      step 1  4\n");
	free(text);
}

static void one_point_is_no_curve(void **state)
{
	const struct wlb_point points[] = {{1, 4}, {2, INFINITY}};
	(void)state;
	for (int count = 0; count <= 2; count++) {
		char *text = drawn(points, count, NULL, 0, true);
		assert_string_equal(text, "");
		free(text);
	}
}

static void a_level_curve(void **state)
{
	const struct wlb_point points[] = {{7, 2}, {7, 2}};
	(void)state;
	char *text = drawn(points, 2, NULL, 0, false);
	assert_non_null(strstr(text, "         2 ."));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_falling_curve),
		cmocka_unit_test(blocks_show_eighths),
		cmocka_unit_test(one_point_is_no_curve),
		cmocka_unit_test(a_level_curve),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
