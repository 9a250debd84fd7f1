#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(expands_in_the_order_of_the_expression),
		cmocka_unit_test(expands_nothing_to_nothing),
		cmocka_unit_test(folds_names_to_ranges),
		cmocka_unit_test(folds_what_it_expanded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
