#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/output/side_by_side.h"

static void assert_printed(int columns, const char *expected)
{
	static const char *const titles[] = {"A 12", "B 13", "C 14"};
	struct wlb_sides sides = {.count = 3, .titles = titles};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	wlb_sides_add(&sides, "state", (const char *const[]){"complete", "failed", "-"});
	wlb_sides_add(&sides, "layout", (const char *const[]){"tp=1", "tp=2,cp=4,pp=8", "é"});
	assert_int_equal(wlb_sides_print(&sides, columns, out), 0);
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
}

static void all_beside_each_other(void **state)
{
	(void)state;
	assert_printed(80, "              A 12            B 13  C 14\n"
	                   "  state   complete          failed     -\n"
	                   "  layout      tp=1  tp=2,cp=4,pp=8     é\n");
}

static void as_many_as_fit(void **state)
{
	(void)state;
	assert_printed(39, "              A 12            B 13\n"
	                   "  state   complete          failed\n"
	                   "  layout      tp=1  tp=2,cp=4,pp=8\n"
	                   "\n"
	                   "          C 14\n"
	                   "  state      -\n"
	                   "  layout     é\n");
}

static void values_that_are_cut(void **state)
{
	(void)state;
	assert_printed(20, "              A 12\n"
	                   "  state   complete\n"
	                   "  layout      tp=1\n"
	                   "\n"
	                   "                B 13\n"
	                   "  state       failed\n"
	                   "  layout  tp=2,cp=4+\n"
	                   "\n"
	                   "          C 14\n"
	                   "  state      -\n"
	                   "  layout     é\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_beside_each_other),
		cmocka_unit_test(as_many_as_fit),
		cmocka_unit_test(values_that_are_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
