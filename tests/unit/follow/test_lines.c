/* A stream in any pieces gives the same lines, each at its offset; a line that is too long is skipped and counted. */
#include "follow/lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct wlb_lines lines;

/* Feeds the text in pieces of that size, and writes its lines, each in brackets with its offset. */
static void split(char *to, const char *text, size_t piece, int64_t offset, bool ends_at_return)
{
	size_t left = strlen(text), length;
	*to = '\0';
	wlb_lines_begin(&lines, offset, ends_at_return);
	while (left > 0) {
		size_t count = left < piece ? left : piece, given = count;
		const char *bytes = text, *line;
		while ((line = wlb_lines_next(&lines, &bytes, &count, &length)) != NULL) {
			assert_int_equal(strlen(line), length);
			to += sprintf(to, "%d[%s]", (int)lines.line_at, line);
		}
		text += given;
		left -= given;
	}
}

static void pieces_do_not_matter(void **state)
{
	char found[256];
	(void)state;
	for (size_t piece = 1; piece < 20; piece++) {
		split(found, "one\n\ntwo\r\nthree", piece, 0, false);
		assert_string_equal(found, "0[one]4[]5[two\r]");
		assert_int_equal(lines.next_at, 10); /* three may go on */
		split(found, " 1%|\r 2%|\rdone\n", piece, 100, true);
		assert_string_equal(found, "100[ 1%|]105[ 2%|]110[done]");
		assert_int_equal(lines.next_at, 115);
	}
}

static void a_long_line_is_skipped_and_counted(void **state)
{
	enum { LONG = 10 * 1000 * 1000 };
	char found[256], *text = malloc(LONG + 16);
	(void)state;
	assert_non_null(text);
	memcpy(text, "a\n", 2);
	memset(text + 2, 'x', LONG);
	memcpy(text + 2 + LONG, "\nb\n", 4);
	split(found, text, 4096, 0, false);
	assert_string_equal(found, "0[a]10000003[b]");
	assert_int_equal(lines.skipped_lines, 1);
	free(text);
}

static void the_longest_line_has_room(void **state)
{
	static char text[WLB_LINES_SIZE + 8], found[WLB_LINES_SIZE + 32];
	(void)state;
	memset(text, 'x', WLB_LINES_SIZE - 1);
	text[WLB_LINES_SIZE - 1] = '\n';
	split(found, text, 1000, 0, false);
	assert_int_equal(strlen(found), WLB_LINES_SIZE - 1 + 3);
	assert_int_equal(lines.skipped_lines, 0);
	memset(text, 'x', WLB_LINES_SIZE);
	text[WLB_LINES_SIZE] = '\n';
	split(found, text, 1000, 0, false);
	assert_string_equal(found, "");
	assert_int_equal(lines.skipped_lines, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_do_not_matter),
		cmocka_unit_test(a_long_line_is_skipped_and_counted),
		cmocka_unit_test(the_longest_line_has_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
