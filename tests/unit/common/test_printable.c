/* Texts of other users do not reach a terminal with control characters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/output/printable.h"

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

/* A program reads the same texts from it. */
static void json_has_no_control_characters(void **state)
{
	(void)state;
	json_t *reply = json_pack("{s:s, s:[s]}", "name", "n\xc3\xa4he\x1b\x7f\xc2\x9b\xe2\x80\xae\xf3\xa0\x81\x81.",
	                          "list", "\xef\xbb\xbf\xf0\x9f\x98\x80");
	char *text = wlb_printable_json(reply, JSON_COMPACT);
	assert_string_equal(text,
	                    "{\"name\":\"n\xc3\xa4he\\u001B\\u007F\\u009B\\u202E\\uDB40\\uDC41.\",\"list\":[\"\\uFEFF"
	                    "\xf0\x9f\x98\x80\"]}");
	json_t *read = json_loads(text, 0, NULL);
	assert_true(json_equal(read, reply));
	json_decref(read);
	free(text);
	text = wlb_printable_json(reply, JSON_INDENT(1));
	assert_non_null(strstr(text, "{\n \"name\""));
	free(text);
	json_decref(reply);
	assert_null(wlb_printable_json(NULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(control_characters_become_spaces),
		cmocka_unit_test(a_zero_does_not_end_the_text),
		cmocka_unit_test(json_has_no_control_characters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
