/* Texts of other users do not reach a terminal with control characters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator/wlb/output/printable.h"

static void control_characters_become_spaces(void **state)
{
	(void)state;
	json_t *reply =
		json_pack("{s:s, s:[{s:s}, s, i], s:n, s:s}", "reason", "\x1b[2Jcleared\r\nline\x7f", "list", "name",
	                  "\xc2\x9b"
	                  "31m red",
	                  "n\xc3\xa4he \xe2\x82\xac \xc2\xa0", 7, "none", "plain", "a b");
	assert_non_null(reply);
	assert_int_equal(wlb_make_printable(reply), 0);
	assert_string_equal(json_string_value(json_object_get(reply, "reason")), " [2Jcleared  line ");
	const json_t *list = json_object_get(reply, "list");
	assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "name")), " 31m red");
	assert_string_equal(json_string_value(json_array_get(list, 1)), "n\xc3\xa4he \xe2\x82\xac \xc2\xa0");
	assert_int_equal(json_integer_value(json_array_get(list, 2)), 7);
	assert_string_equal(json_string_value(json_object_get(reply, "plain")), "a b");
	json_decref(reply);
}

static void a_zero_does_not_end_the_text(void **state)
{
	(void)state;
	json_t *text = json_stringn("a\0b", 3);
	assert_int_equal(wlb_make_printable(text), 0);
	assert_string_equal(json_string_value(text), "a b");
	json_decref(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(control_characters_become_spaces),
		cmocka_unit_test(a_zero_does_not_end_the_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
