#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/output/wrap.h"

static void expect(const char *text, int indent, int columns, const char *lines)
{
	char *printed = NULL;
	size_t size;
	FILE *out = open_memstream(&printed, &size);
	wlb_wrap_print(text, indent, columns, out);
	fclose(out);
	assert_string_equal(printed, lines);
	free(printed);
}

static void lines_are_no_longer_than_the_width(void **state)
{
	expect("rank 3 on n2 has computed for 200 s", 2, 24,
	       "  rank 3 on n2 has\n"
	       "  computed for 200 s\n");
	expect("just fits into a line", 0, 21, "just fits into a line\n");
	expect("twenty-two characters!", 0, 21, "twenty-two\ncharacters!\n");
	expect("größere Nachricht über", 0, 21, "größere Nachricht\nüber\n");
	(void)state;
}

static void a_long_word_is_cut(void **state)
{
	expect("abcdefghijklmnopqrstuvwxyz", 1, 21, " abcdefghijklmnopqrst\n uvwxyz\n");
	expect("öööööööööööööööööööööö x", 0, 20, "öööööööööööööööööööö\nöö x\n");
	(void)state;
}

static void spaces_at_ends_of_lines_are_left_out(void **state)
{
	expect("  twenty characters!!    more  ", 0, 20, "twenty characters!!\nmore\n");
	expect("", 2, 30, "  \n");
	(void)state;
}

static void narrow_terminals_have_room_for_twenty_characters(void **state)
{
	expect("twenty characters !!", 8, 10, "        twenty characters !!\n");
	(void)state;
}

static void wide_characters_take_two_columns(void **state)
{
	int used;
	assert_int_equal(wlb_text_width("größe"), 5);
	assert_int_equal(wlb_text_width("训练"), 4);
	assert_int_equal(wlb_text_width("e\u0301\u0301"), 1);
	assert_int_equal(wlb_text_width("\U0001f680"), 2);
	assert_int_equal(wlb_text_fit("训练", 3, &used), strlen("训"));
	assert_int_equal(used, 2);
	assert_int_equal(wlb_text_fit("e\u0301f", 1, &used), strlen("e\u0301"));
	expect("训练训练训练 训练训练训练 x", 0, 20, "训练训练训练\n训练训练训练 x\n");
	(void)state;
}

static void what_the_locale_does_not_know_takes_one_column(void **state)
{
	setlocale(LC_CTYPE, "C");
	assert_int_equal(wlb_text_width("训练"), 2);
	setlocale(LC_CTYPE, "C.UTF-8");
	assert_int_equal(wlb_text_width("a\tb"), 3);
	(void)state;
}

int main(void)
{
	setlocale(LC_CTYPE, "C.UTF-8");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_no_longer_than_the_width),
		cmocka_unit_test(a_long_word_is_cut),
		cmocka_unit_test(spaces_at_ends_of_lines_are_left_out),
		cmocka_unit_test(narrow_terminals_have_room_for_twenty_characters),
		cmocka_unit_test(wide_characters_take_two_columns),
		cmocka_unit_test(what_the_locale_does_not_know_takes_one_column),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
