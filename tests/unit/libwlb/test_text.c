/* Texts of any bytes become UTF-8 that can be stored, and lines that a terminal can show. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "libwlb/wlb.h"

#define BAD WLB_TEXT_REPLACEMENT

static int is_utf8(const char *text)
{
	size_t length = strlen(text);
	for (size_t at = 0; at < length;) {
		uint32_t code;
		at += wlb_text_first(text + at, length - at, &code);
		if (code == WLB_TEXT_INVALID)
			return 0;
	}
	return 1;
}

static int has_control(const char *text)
{
	size_t length = strlen(text);
	for (size_t at = 0; at < length;) {
		uint32_t code;
		at += wlb_text_first(text + at, length - at, &code);
		if (wlb_text_is_control(code))
			return 1;
	}
	return 0;
}

static void what_is_no_character_is_replaced(void **state)
{
	(void)state;
	static const char *const texts[][2] = {
		{"caf\xe9", "caf" BAD},
		{"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
		{"\xc3", BAD},
		{"\xe2\x82", BAD BAD},
		{"\xe2\x82x", BAD BAD "x"},
		{"\xf0\x9f\x98", BAD BAD BAD},
		{"\xa9", BAD},
		{"\xc0\xaf", BAD BAD}, /* overlong forms of '/' */
		{"\xe0\x80\xaf", BAD BAD BAD},
		{"\xf0\x80\x80\xaf", BAD BAD BAD BAD},
		{"\xed\xa0\x80", BAD BAD BAD},         /* a surrogate */
		{"\xed\x9f\xbf", "\xed\x9f\xbf"},      /* the character before them */
		{"\xf4\x90\x80\x80", BAD BAD BAD BAD}, /* above U+10FFFF */
		{"\xf4\x8f\xbf\xbe", "\xf4\x8f\xbf\xbe"},
		{"\xf8\x88\x80\x80\x80", BAD BAD BAD BAD BAD}, /* five bytes */
		{"\xff\xfe", BAD BAD},
		{"a\x1b[31m\n\tb", "a\x1b[31m\n\tb"},
		{"", ""},
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char stored[64];
		assert_int_equal(wlb_text_store(stored, sizeof(stored), texts[i][0]), strlen(texts[i][1]));
		assert_string_equal(stored, texts[i][1]);
	}
}

static void every_byte_can_be_stored_and_shown(void **state)
{
	(void)state;
	for (int byte = 1; byte < 256; byte++) {
		char text[] = {'a', (char)byte, 'b', '\0'}, stored[16], shown[16];
		wlb_text_store(stored, sizeof(stored), text);
		wlb_text_show(shown, sizeof(shown), text);
		assert_true(is_utf8(stored) && is_utf8(shown) && !has_control(shown));
		assert_true(stored[0] == 'a' && stored[strlen(stored) - 1] == 'b');
		if (byte < 0x80)
			assert_string_equal(stored, text);
		if (byte >= ' ' && byte < 0x7f)
			assert_string_equal(shown, text);
	}
}

static void a_size_cuts_between_characters(void **state)
{
	(void)state;
	static const char text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xe9z";
	for (size_t size = 1; size < 24; size++) {
		char stored[24], shown[24];
		memset(stored, 'x', sizeof(stored));
		size_t bytes = wlb_text_store(stored, size, text);
		assert_true(bytes < size && strlen(stored) == bytes && is_utf8(stored));
		for (size_t i = size; i < sizeof(stored); i++)
			assert_int_equal(stored[i], 'x');
		assert_int_equal(wlb_text_show(shown, size, text), bytes);
	}
	assert_int_equal(wlb_text_cut(text, 2), 1);
	assert_int_equal(wlb_text_cut(text, 3), 3);
	assert_int_equal(wlb_text_cut(text, 5), 3);
	assert_int_equal(wlb_text_cut(text, 9), 6);
	assert_int_equal(wlb_text_cut(text, 11), 11);
	assert_int_equal(wlb_text_cut(text, 100), strlen(text));
	assert_int_equal(wlb_text_cut("", 3), 0);
}

static void no_control_reaches_a_line(void **state)
{
	(void)state;
	static const char *const controls[] = {
		"\x1b",         "\t",           "\x7f",         "\xc2\x9b",     "\xc2\xad",         "\xd8\x9c",
		"\xe2\x80\x8b", "\xe2\x80\x8f", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xae",     "\xe2\x81\xa6",
		"\xe2\x81\xa9", "\xef\xbb\xbf", "\xef\xbf\xbe", "\xe1\xa0\x8e", "\xf3\xa0\x81\x81",
	};
	for (size_t i = 0; i < sizeof(controls) / sizeof(controls[0]); i++) {
		char text[32], shown[32];
		snprintf(text, sizeof(text), "%sa%s[2J%s", controls[i], controls[i], controls[i]);
		wlb_text_show(shown, sizeof(shown), text);
		assert_string_equal(shown, " a [2J");
	}
	static const char *const cases[][2] = {
		{"one\r\ntwo\n", "one  two"},
		{"red \x9b[31m", "red " BAD "[31m"},
		{"\xc2\xa0n\xc3\xa4he\xe3\x80\x80", "\xc2\xa0n\xc3\xa4he\xe3\x80\x80"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char shown[32];
		wlb_text_show(shown, sizeof(shown), cases[i][0]);
		assert_string_equal(shown, cases[i][1]);
	}
}

static void an_error_is_a_line(void **state)
{
	(void)state;
	struct wlb_error error;
	char name[1100], *end = name;
	wlb_fail(&error, "file %s: cannot be read", "caf\xe9\n\x1b[31m");
	assert_string_equal(error.message, "file caf" BAD "  [31m: cannot be read");
	while (end < name + 1090)
		end = stpcpy(end, "\xc3\xa9");
	for (const char *before = "aaaa"; *before != '\0'; before++) {
		wlb_fail(&error, "%s%s", before, name);
		assert_true(is_utf8(error.message) && strlen(error.message) >= sizeof(error.message) - 2);
		assert_null(strstr(error.message, BAD));
		wlb_fail_in(&error, "%s%s", before, "job caf\xe9");
		assert_true(is_utf8(error.message) && strlen(error.message) >= sizeof(error.message) - 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_character_is_replaced),
		cmocka_unit_test(every_byte_can_be_stored_and_shown),
		cmocka_unit_test(a_size_cuts_between_characters),
		cmocka_unit_test(no_control_reaches_a_line),
		cmocka_unit_test(an_error_is_a_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
