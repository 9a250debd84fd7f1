#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/output/table.h"

static void columns_are_as_wide_as_their_widest(void **state)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct wlb_table table = {.columns = 3, .right = "lrl"};
	(void)state;
	wlb_table_add(&table, (const char *const[]){"A", "NUMBER", "LAST"});
	wlb_table_add(&table, (const char *const[]){"größe", "7", "x"});
	assert_int_equal(wlb_table_print(&table, "> ", out), 0);
	fclose(out);
	assert_string_equal(text, "> A      NUMBER  LAST\n"
	                          "> größe       7  x\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(columns_are_as_wide_as_their_widest)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
