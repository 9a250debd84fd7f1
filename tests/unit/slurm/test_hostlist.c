#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/slurm/hostlist_size.h"
#include "coordinator/slurm/slurm_api.h"

static void expands_in_the_order_of_the_expression(void **state)
{
	(void)state;
	char **names;
	int count;
	struct wlb_error error;
	assert_int_equal(wlb_hostlist_expand("n[3,1-2],login", &names, &count, &error), 0);
	assert_int_equal(count, 4);
	assert_string_equal(names[0], "n3");
	assert_string_equal(names[1], "n1");
	assert_string_equal(names[2], "n2");
	assert_string_equal(names[3], "login");
	wlb_strings_free(names, count);
}

static void expands_nothing_to_nothing(void **state)
{
	(void)state;
	char **names;
	int count;
	struct wlb_error error;
	assert_int_equal(wlb_hostlist_expand("", &names, &count, &error), 0);
	assert_int_equal(count, 0);
	wlb_strings_free(names, count);
}

static void folds_names_to_ranges(void **state)
{
	(void)state;
	char *names[] = {"n1", "n2", "n3", "n5", "gpu07"};
	struct wlb_error error;
	char *folded = wlb_hostlist_fold(names, 5, &error);
	assert_non_null(folded);
	assert_string_equal(folded, "n[1-3,5],gpu07");
	free(folded);
	folded = wlb_hostlist_fold(NULL, 0, &error);
	assert_string_equal(folded, "");
	free(folded);
}

static void folds_what_it_expanded(void **state)
{
	(void)state;
	char **names;
	int count;
	struct wlb_error error;
	assert_int_equal(wlb_hostlist_expand("rack[01-16]n[001-128]", &names, &count, &error), 0);
	assert_int_equal(count, 2048);
	char *folded = wlb_hostlist_fold(names, count, &error);
	wlb_strings_free(names, count);
	assert_int_equal(wlb_hostlist_expand(folded, &names, &count, &error), 0);
	assert_int_equal(count, 2048);
	assert_string_equal(names[2047], "rack16n128");
	wlb_strings_free(names, count);
	free(folded);
}

static void lists_of_clients_have_the_names_that_were_counted(void **state)
{
	static const struct {
		const char *text;
		int count;
	} cases[] = {{"n1", 1},         {"n[1-3,5],login", 5}, {"rack[01-16]n[001-128]", 2048}, {"a-b_c.d,[7-8]", 3},
	             {"n[008-011]", 4}, {"n[65535]", 1}};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wlb_error error = {0};
		char **names;
		int count;
		assert_int_equal(wlb_hostlist_size(cases[i].text, 2048, &error), cases[i].count);
		if (wlb_hostlist_expand_most(cases[i].text, cases[i].count, &names, &count, &error) != 0)
			fail_msg("%s: %s", cases[i].text, error.message);
		assert_int_equal(count, cases[i].count);
		wlb_strings_free(names, count);
	}
}

static void lists_of_clients_are_refused_with_place_and_rule(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{"", "byte 1, after '': a name must not be empty"},
		{"n1,,n2", "byte 4, after 'n1,': a name must not be empty"},
		{"n[1-1000000000]", "byte 15, after 'n[1-1000000000': the list has more than 2048 names, the maximum: "
	                            "name each node once"},
		{"n[1-60000][1-60000]", "more than 2048 names"},
		{"n[1-2048][1-2048][1-2048][1-2048][1-2048][1-2048]", "more than 2048 names"}, /* 2^66 */
		{"n[1-64],m[1-64][1-64]", "more than 2048 names"},
		{"n[1-2048],m", "more than 2048 names"},
		{"n[0-9223372036854775807]", "a number must have at most 18 digits"},
		{"n[3-1]", "the end of a range must not be below its begin"},
		{"n[1", "byte 4, after 'n[1': must be ']', ',' or '-'"},
		{"n[]", "must be a number"},
		{"n[1-2", "must be ']'"},
		{"n[a-b]", "must be a number"},
		{"n[1--2]", "must be a number"},
		{"n1]", "must be a letter"},
		{"n[1-2]-ib", "a name must end with its last bracket"},
		{"n 1", "byte 2, after 'n': must be a letter"},
		{"n\xc3\xa9[1-2]", "byte 2, after 'n': must be a letter"},
		{"n\n", "must be a letter"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wlb_error error = {0};
		char **names;
		int count;
		assert_int_equal(wlb_hostlist_expand_most(cases[i].text, 2048, &names, &count, &error), -1);
		if (strstr(error.message, cases[i].message) == NULL)
			fail_msg("'%s' is not in: %s", cases[i].message, error.message);
		assert_null(names);
	}
	char name[300];
	memset(name, 'n', sizeof(name));
	strcpy(name + 254, "[10]"); /* 256 bytes */
	assert_int_equal(wlb_hostlist_size(name, 10, NULL), -1);
	strcpy(name + 254, "[01-2]");
	assert_int_equal(wlb_hostlist_size(name, 10, NULL), -1);
	strcpy(name + 253, "[10]");
	assert_int_equal(wlb_hostlist_size(name, 10, NULL), 1);
	assert_int_equal(wlb_hostlist_size("n[1-65537]", 1 << 20, NULL), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(expands_in_the_order_of_the_expression),
		cmocka_unit_test(expands_nothing_to_nothing),
		cmocka_unit_test(folds_names_to_ranges),
		cmocka_unit_test(folds_what_it_expanded),
		cmocka_unit_test(lists_of_clients_have_the_names_that_were_counted),
		cmocka_unit_test(lists_of_clients_are_refused_with_place_and_rule),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
