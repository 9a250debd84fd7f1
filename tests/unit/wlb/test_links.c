/* What `wlb run` reads from the output of wlb-check-links. */
#include "coordinator/wlb/run/check/links.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* expected: NULL where the text says nothing. */
static void check(const char *text, const char *expected)
{
	char lines[256];
	json_t *nodes = json_pack("[s, s, s, s]", "n1", "n2", "n3", "n4");
	snprintf(lines, sizeof(lines), "%s", text);
	json_t *unreached = wlb_run_read_links(lines, nodes);
	char *found = json_dumps(unreached, JSON_COMPACT | JSON_SORT_KEYS);
	if (expected == NULL)
		assert_null(unreached);
	else
		assert_string_equal(found, expected);
	free(found);
	json_decref(unreached);
	json_decref(nodes);
}

static void test_lines(void **state)
{
	(void)state;
	check("n2 does not reach n1 n3\n", "{\"n2\":[\"n1\",\"n3\"]}");
	check("n1 does not reach n2\nn3 reaches 3 nodes\nn2 does not reach n1\n", "{\"n1\":[\"n2\"],\"n2\":[\"n1\"]}");
	check("n2 does not reach n1\nn2 does not reach n3", "{\"n2\":[\"n3\"]}");
	check("n1 reaches 3 nodes\n", "{}");
}

static void test_no_line_is_known(void **state)
{
	(void)state;
	check("", NULL);
	check("welcome to the cluster\n", NULL);
	check("0: n1 reaches 3 nodes\n1: n2 does not reach n1\n", NULL);
	check("n9 reaches 3 nodes\nn1 reache", NULL);
	check("welcome to the cluster\nn1 reaches 3 nodes\n", "{}");
}

static void test_other_lines_are_ignored(void **state)
{
	(void)state;
	check("n2 does not reach", NULL); /* cut */
	check("n2 does not reach \n", "{\"n2\":[]}");
	check("n9 does not reach n1\n does not reach n1\n", NULL);
	check("n9 does not reach n1\nn3 reaches 3 nodes\n", "{}");
	check("n2 does not reach n9 n1\n", "{\"n2\":[\"n1\"]}");
}

static void check_state(const char *text, enum wlb_link_state expected, const char *expected_names)
{
	char lines[256], names[16];
	json_t *nodes = json_pack("[s, s, s, s]", "n1", "n2", "n3", "n12345678");
	snprintf(lines, sizeof(lines), "%s", text);
	assert_int_equal(wlb_run_link_state(lines, nodes, "n2", names, sizeof(names)), expected);
	assert_string_equal(names, expected_names);
	json_decref(nodes);
}

static void test_state_of_one_node(void **state)
{
	(void)state;
	check_state("n1 reaches 3 nodes\nn2 reaches 3 nodes\n", WLB_LINK_REACHED, "");
	check_state("n2 reaches 3 nodes\nn1 does not reach n3\n", WLB_LINK_REACHED, "");
	check_state("n2 does not reach n3 n1\nn1 reaches 3 nodes\n", WLB_LINK_UNREACHED, "n1, n3");
	check_state("n2 reaches 3 nodes\nn3 does not reach n2\n", WLB_LINK_UNREACHED, "n3");
	check_state("n1 does not reach n2\nn3 does not reach n2", WLB_LINK_UNREACHED, "n1, n3");
	check_state("n2 does not reach n12345678 n1 n3\n", WLB_LINK_UNREACHED, "n1, n3"); /* those that fit */
	check_state("", WLB_LINK_UNKNOWN, "");
	check_state("n1 reaches 3 nodes\nn3 reaches 3 nodes\n", WLB_LINK_UNKNOWN, "");
	check_state("n22 reaches 3 nodes\nxn2 reaches 3 nodes\nn2 reache", WLB_LINK_UNKNOWN, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_no_line_is_known),
		cmocka_unit_test(test_other_lines_are_ignored),
		cmocka_unit_test(test_state_of_one_node),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
