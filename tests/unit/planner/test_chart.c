#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "planner/cli/chart.h"

static void check(bool blocks, const char *expected)
{
	static const struct wlb_bar bars[] = {{"one", "1.00", 8.0}, {"two", "0.50", 4.5}, {"nothing", "0", 0.0}};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	assert_non_null(out);
	wlb_bars(out, bars, 3, 33, blocks);
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
}

static void is_as_long_as_its_value(void **state)
{
	(void)state;
	check(false, "  one      ################  1.00\n"
	             "  two      #########         0.50\n"
	             "  nothing                       0\n");
	check(true, "  one      ████████████████  1.00\n"
	            "  two      █████████         0.50\n"
	            "  nothing                       0\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(is_as_long_as_its_value)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
