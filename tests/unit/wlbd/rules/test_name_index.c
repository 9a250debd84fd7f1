#include "coordinator/wlbd/rules/name_index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void names_are_found_by_their_index_in_the_list(void **state)
{
	static const char *const names[] = {"n2", "n10", "n1", "n3"};
	struct wlbd_name_index index;
	(void)state;
	assert_int_equal(wlbd_name_index_make(&index, names, 4), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(wlbd_name_index_find(&index, names[i]), i);
	assert_int_equal(wlbd_name_index_find(&index, "n4"), -1);
	assert_int_equal(wlbd_name_index_find(&index, ""), -1);
	assert_int_equal(wlbd_name_index_find(&index, NULL), -1);
	assert_null(wlbd_name_index_repeated(&index));
	wlbd_name_index_free(&index);
	assert_int_equal(wlbd_name_index_find(&index, "n2"), -1);
}

static void a_name_that_is_repeated(void **state)
{
	static const char *const names[] = {"n3", "n1", "n2", "n1"};
	struct wlbd_name_index index;
	(void)state;
	assert_int_equal(wlbd_name_index_make(&index, names, 4), 0);
	assert_string_equal(wlbd_name_index_repeated(&index), "n1");
	wlbd_name_index_free(&index);
	assert_int_equal(wlbd_name_index_make(&index, NULL, 0), 0);
	assert_null(wlbd_name_index_repeated(&index));
	wlbd_name_index_free(&index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_found_by_their_index_in_the_list),
		cmocka_unit_test(a_name_that_is_repeated),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
