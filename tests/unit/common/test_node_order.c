#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/node_order.h"

static void an_order_is_written_and_read(void **state)
{
	(void)state;
	const int order[] = {10, 0, 2, 1, 3, 5, 4, 9, 8, 7, 6};
	const int count = sizeof(order) / sizeof(order[0]);
	char *text = wlb_node_order_format(order, count);
	assert_string_equal(text, "10,0,2,1,3,5,4,9,8,7,6");
	int *read = wlb_node_order_parse(text, count);
	assert_non_null(read);
	assert_memory_equal(read, order, sizeof(order));
	free(read);
	free(text);
}

static void what_names_other_nodes_is_no_order(void **state)
{
	(void)state;
	static const char *const texts[] = {
		NULL,    "",       "0",      "0,1",    "0,1,2,3", "0,1,1", "0,1,3",          "0,1,-2",
		"0 1 2", "0,1,2,", "0,1,2 ", "0,,1,2", ",0,1,2",  "a,1,2", "0,1,4294967298", "+0,1,2",
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_null(wlb_node_order_parse(texts[i], 3));
	assert_null(wlb_node_order_parse("0", 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_order_is_written_and_read),
		cmocka_unit_test(what_names_other_nodes_is_no_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
