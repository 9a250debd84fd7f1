/* What `wlb run` reads from the output of wlb-check-links. */
#include "coordinator/wlb/run/links.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void check(const char *text, const char *expected)
{
	char lines[256];
	json_t *nodes = json_pack("[s, s, s, s]", "n1", "n2", "n3", "n4");
	snprintf(lines, sizeof(lines), "%s", text);
	json_t *unreached = wlb_run_read_links(lines, nodes);
	char *found = json_dumps(unreached, JSON_COMPACT | JSON_SORT_KEYS);
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
	check("", "{}");
}

static void test_other_lines_are_ignored(void **state)
{
	(void)state;
	check("n2 does not reach", "{}"); /* cut */
	check("n2 does not reach \n", "{\"n2\":[]}");
	check("n9 does not reach n1\n does not reach n1\n", "{}");
	check("n2 does not reach n9 n1\n", "{\"n2\":[\"n1\"]}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_other_lines_are_ignored),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
