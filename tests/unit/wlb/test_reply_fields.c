#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/wlb/output/reply_fields.h"

/* Fields with `count` nodes, whose numbers are odd, so that no two are a range. */
static json_t *fields_of(const char *prefix, int count)
{
	json_t *nodes = json_array();
	for (int i = 0; i < count; i++)
		assert_int_equal(json_array_append_new(nodes, json_sprintf("%s%d", prefix, 2 * i + 1)), 0);
	return json_pack("{s:o}", "nodes", nodes);
}

static void expect(const char *prefix, int count, size_t size, const char *expected)
{
	char text[128];
	json_t *fields = fields_of(prefix, count);
	assert_in_range(size, 1, sizeof(text));
	wlb_field_nodes(fields, text, size);
	assert_string_equal(text, expected);
	json_decref(fields);
}

static void a_list_that_fits_is_whole(void **state)
{
	expect("n", 0, 64, "-");
	expect("n", 3, 64, "n[1,3,5]");
	expect("n", 3, sizeof("n[1,3,5]"), "n[1,3,5]");
	(void)state;
}

static void a_longer_list_is_cut_between_names(void **state)
{
	expect("n", 80, 64, "n[1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,33,...] (80 nodes)");
	expect("node-of-a-rack-", 80, 64, "node-of-a-rack-[1,3,5,7,9,11,13,15,17,19,21,23,...] (80 nodes)");
	(void)state;
}

static void a_list_of_several_prefixes_is_cut_outside_of_brackets(void **state)
{
	char text[40];
	json_t *fields =
		json_pack("{s:[s,s,s,s,s]}", "nodes", "a1", "a3", "node-of-rack-b", "node-of-rack-c", "node-of-rack-d");
	wlb_field_nodes(fields, text, sizeof(text));
	assert_string_equal(text, "a[1,3],node-of-rack-b,... (5 nodes)");
	json_decref(fields);
	(void)state;
}

static void a_list_of_which_no_name_fits_is_a_number(void **state)
{
	expect("a-very-long-name-of-a-node-in-a-large-cluster-", 80, 64, "80 nodes");
	expect("a-very-long-name-of-a-node-in-a-large-cluster-of-other-nodes.example-", 1, 64, "1 node");
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_that_fits_is_whole),
		cmocka_unit_test(a_longer_list_is_cut_between_names),
		cmocka_unit_test(a_list_of_several_prefixes_is_cut_outside_of_brackets),
		cmocka_unit_test(a_list_of_which_no_name_fits_is_a_number),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
