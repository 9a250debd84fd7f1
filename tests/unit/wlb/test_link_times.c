/* What `wlb run` concludes from the times that wlb-check-links prints. */
#include "coordinator/wlb/run/check/link_times.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* Of n2, among n1, n2, n3 and n30. */
static bool read(const char *text, struct wlb_link_times *times)
{
	static json_t *nodes;
	if (nodes == NULL)
		nodes = json_pack("[s, s, s, s]", "n2", "n1", "n3", "n30");
	return wlb_run_read_link_times(text, nodes, "n2", times);
}

static bool is_slow(const char *text)
{
	struct wlb_link_times times;
	assert_true(read(text, &times));
	return wlb_run_link_is_slow(&times);
}

static void test_medians(void **state)
{
	struct wlb_link_times times;
	(void)state;
	assert_true(read("n1 reaches 3 nodes\n"
	                 "n1 exchanges 262144 bytes with n2 in 0.084000 s, n3 in 0.001000 s, n30 in 0.002000 s\n"
	                 "n3 exchanges 262144 bytes with n1 in 0.001000 s, n2 in 0.090000 s, n30 in 0.004000 s\n"
	                 "n2 exchanges 262144 bytes with n30 in 0.050000 s\n",
	                 &times));
	assert_int_equal(times.bytes, 262144);
	assert_true(times.own_s == 0.084);
	assert_string_equal(times.other, "n1");
	assert_true(times.others_s == 0.002);
	assert_true(wlb_run_link_is_slow(&times));
}

/* Half of the pairs are slow by the links of others. */
static void test_two_in_the_middle(void **state)
{
	struct wlb_link_times times;
	(void)state;
	assert_true(read(
		"n2 exchanges 1024 bytes with n1 in 0.5 s, n3 in 0.001 s\nn1 exchanges 1024 bytes with n3 in 0.001 s\n"
		"n3 exchanges 1024 bytes with n1 in 0.002 s\n",
		&times));
	assert_true(times.own_s == 0.001 && times.others_s == 0.002);
}

static void test_limits(void **state)
{
	(void)state;
	assert_true(is_slow("n2 exchanges 9 bytes with n1 in 0.084 s\nn1 exchanges 9 bytes with n3 in 0.002 s\n"));
	assert_true(is_slow("n2 exchanges 9 bytes with n1 in 0.401 s\nn1 exchanges 9 bytes with n3 in 0.1 s\n"));
	assert_false(is_slow("n2 exchanges 9 bytes with n1 in 0.399 s\nn1 exchanges 9 bytes with n3 in 0.1 s\n"));
	assert_true(is_slow("n2 exchanges 9 bytes with n1 in 0.022 s\nn1 exchanges 9 bytes with n3 in 0.001 s\n"));
	assert_false(is_slow("n2 exchanges 9 bytes with n1 in 0.020 s\nn1 exchanges 9 bytes with n3 in 0.001 s\n"));
	assert_false(is_slow("n2 exchanges 9 bytes with n1 in 0.001 s\nn1 exchanges 9 bytes with n3 in 0.9 s\n"));
}

static void test_nothing_to_compare(void **state)
{
	struct wlb_link_times times;
	(void)state;
	assert_false(read("", &times));
	assert_false(read("n2 reaches 3 nodes\n", &times));
	assert_false(read("n2 exchanges 9 bytes with n1 in 0.1 s\n", &times));              /* no other pair */
	assert_false(read("n1 exchanges 9 bytes with n3 in 0.1 s\n", &times));              /* none of its own */
	assert_false(read("n1 exchanges 9 bytes with n2 in 0.1 s, n3 in 0.1 s\n", &times)); /* nor its line */
}

static void test_other_lines_are_ignored(void **state)
{
	struct wlb_link_times times;
	static const char own[] = "n2 exchanges 9 bytes with n1 in 0.1 s\n";
	static const char *const lines[] = {
		"n1 exchanges 8 bytes with n3 in 0.1 s\n",  "n9 exchanges 9 bytes with n3 in 0.1 s\n",
		"n1 exchanges 9 bytes with n9 in 0.1 s\n",  "n1 exchanges 9 bytes with n3 in -0.1 s\n",
		"n1 exchanges 9 bytes with n3 in 0.1\n",    "n1 exchanges 9 bytes with n3\nn30 in 0.1 s\n",
		"n1 exchanges 9 bytes with n3 in nan s\n",  "n1 exchanges -9 bytes with n3 in 0.1 s\n",
		" exchanges 9 bytes with n3 in 0.1 s\n",    "n1 exchanges bytes with n3 in 0.1 s\n",
		"xn1 exchanges 9 bytes with n3 in 0.1 s\n",
	};
	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char text[256];
		snprintf(text, sizeof(text), "%s%s", own, lines[i]);
		assert_false(read(text, &times));
		snprintf(text, sizeof(text), "%s%sn30 exchanges 9 bytes with n3 in 0.1 s\n", own, lines[i]);
		assert_true(read(text, &times));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_medians),
		cmocka_unit_test(test_two_in_the_middle),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_nothing_to_compare),
		cmocka_unit_test(test_other_lines_are_ignored),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
