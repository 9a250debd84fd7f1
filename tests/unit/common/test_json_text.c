/* JSON strings of texts of any bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/json_text.h"

static void expect(json_t *string, const char *value)
{
	assert_string_equal(json_string_value(string), value);
	json_decref(string);
}

static void any_text_becomes_a_string(void **state)
{
	(void)state;
	expect(wlb_json_text("a\x1b\n\xc3\xa9"), "a\x1b\n\xc3\xa9");
	expect(wlb_json_text("caf\xe9"), "caf\xef\xbf\xbd");
	expect(wlb_json_text(""), "");
	for (int byte = 1; byte < 256; byte++) {
		char text[] = {'a', (char)byte, 'b', '\0'};
		json_t *string = wlb_json_text(text);
		assert_non_null(string);
		json_decref(string);
	}
}

static void a_long_text_is_cut_between_characters(void **state)
{
	(void)state;
	expect(wlb_json_text_cut("a\xc3\xa9", 2), "a");
	expect(wlb_json_text_cut("a\xc3\xa9", 3), "a\xc3\xa9");
	expect(wlb_json_text_cut("a\xe9", 3), "a");
	expect(wlb_json_text_cut("a\xe9", 4), "a\xef\xbf\xbd");
	expect(wlb_json_text_cut("a\xe9", 0), "");
	char *text = malloc(WLB_JSON_TEXT_MAX + 2);
	memset(text, 0xe9, WLB_JSON_TEXT_MAX + 1);
	text[WLB_JSON_TEXT_MAX + 1] = '\0';
	json_t *string = wlb_json_text(text);
	assert_in_range(json_string_length(string), WLB_JSON_TEXT_MAX - 2, WLB_JSON_TEXT_MAX);
	json_decref(string);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_text_becomes_a_string),
		cmocka_unit_test(a_long_text_is_cut_between_characters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
