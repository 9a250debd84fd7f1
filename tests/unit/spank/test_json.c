#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "spank/json.h"

static void expect(const char *text, const char *json)
{
	char *got = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&got, &size);
	wlb_json_string(out, text);
	fclose(out);
	assert_string_equal(got, json);
	free(got);
}

static void quotes_and_escapes(void **state)
{
	(void)state;
	expect("", "\"\"");
	expect("train", "\"train\"");
	expect("a\"b\\c/d", "\"a\\\"b\\\\c/d\"");
	expect("a\nb\tc\x01\x7f", "\"a\\u000ab\\u0009c\\u0001\\u007f\"");
}

static void keeps_utf8(void **state)
{
	(void)state;
	expect("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
}

static void replaces_what_is_not_utf8(void **state)
{
	(void)state;
	expect("a\xff"
	       "b",
	       "\"a\\ufffdb\"");
	expect("\xc3", "\"\\ufffd\"");                       /* cut short */
	expect("\xc0\xaf", "\"\\ufffd\\ufffd\"");            /* not the shortest form */
	expect("\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""); /* a surrogate */
	expect("\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quotes_and_escapes),
		cmocka_unit_test(keeps_utf8),
		cmocka_unit_test(replaces_what_is_not_utf8),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
