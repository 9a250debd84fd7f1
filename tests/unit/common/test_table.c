#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/output/table.h"

static void columns_are_as_wide_as_their_widest(void **state)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct wlb_table table = {.columns = 3, .right = "lrl"};
	(void)state;
	wlb_table_add(&table, (const char *const[]){"A", "NUMBER", "LAST"});
	wlb_table_add(&table, (const char *const[]){"größe", "7", "x"});
	assert_int_equal(wlb_table_print(&table, "> ", out), 0);
	fclose(out);
	assert_string_equal(text, "> A      NUMBER  LAST\n"
	                          "> größe       7  x\n");
	free(text);
}

/* Prints a row of a table that may take `width` columns, and of which columns may be cut, left out, or be below. */
static char *fitted(int width, const char *const *cells, const char *shrink, const char *leave, unsigned *left_out)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct wlb_table table = {.columns = 5,
	                          .right = "lllrl",
	                          .width = width,
	                          .note_columns = width,
	                          .shrink = shrink,
	                          .leave = leave};
	wlb_table_add(&table, (const char *const[]){"RUN", "NAME", "USER", "STEP", "REASON"});
	wlb_table_add(&table, cells);
	wlb_table_note(&table, "a note");
	assert_int_equal(wlb_table_print(&table, "", out), 0);
	fclose(out);
	*left_out = table.left_out;
	return text;
}

static void expect_fitted(int width, const char *expected, unsigned expected_left_out)
{
	static const char *const cells[] = {"12", "pretrain-large", "alexandra", "7/120",
	                                    "rank 3 was killed by a signal"};
	unsigned left_out;
	char *text = fitted(width, cells, "-cc-n", "-21--", &left_out);
	assert_string_equal(text, expected);
	assert_int_equal(left_out, expected_left_out);
	free(text);
}

static void a_table_fits_its_width(void **state)
{
	(void)state;
	const char *whole = "RUN  NAME            USER        STEP  REASON\n"
			    "12   pretrain-large  alexandra  7/120  rank 3 was killed by a signal\n"
			    "    a note\n";
	expect_fitted(0, whole, 0);
	expect_fitted(68, whole, 0);
	expect_fitted(67,
	              "RUN  NAME            USER        STEP\n"
	              "12   pretrain-large  alexandra  7/120\n"
	              "    rank 3 was killed by a signal\n"
	              "    a note\n",
	              0);
	expect_fitted(33,
	              "RUN  NAME        USER        STEP\n"
	              "12   pretrain-+  alexandra  7/120\n"
	              "    rank 3 was killed by a signal\n"
	              "    a note\n",
	              0);
	expect_fitted(30,
	              "RUN  NAME      USER       STEP\n"
	              "12   pretrai+  alexand+  7/120\n"
	              "    rank 3 was killed by a\n"
	              "    signal\n"
	              "    a note\n",
	              0);
	expect_fitted(29,
	              "RUN  USER        STEP\n"
	              "12   alexandra  7/120\n"
	              "    rank 3 was killed by a\n"
	              "    signal\n"
	              "    a note\n",
	              1 << 1);
	expect_fitted(12,
	              "RUN   STEP\n"
	              "12   7/120\n"
	              "    rank 3 was killed by\n"
	              "    a signal\n"
	              "    a note\n",
	              1 << 1 | 1 << 2);
}

/* Characters that take two columns, or none, are not divided. */
static void wide_characters_are_cut_whole(void **state)
{
	(void)state;
	unsigned left_out;
	assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
	char *text = fitted(
		33,
		(const char *const[]){"12", "\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03", "e\u0301mile-gr", "7", ""},
		"-c---", NULL, &left_out);
	assert_string_equal(text, "RUN  NAME      USER      STEP  REASON\n"
	                          "12   \u4e00\u4e8c\u4e09+   e\u0301mile-gr     7  \n"
	                          "    a note\n");
	free(text);
}

static void states_have_colours(void **state)
{
	(void)state;
	for (int has_colours = 0; has_colours < 2; has_colours++) {
		char *text = NULL;
		size_t size;
		FILE *out = open_memstream(&text, &size);
		struct wlb_table table = {
			.columns = 2, .right = "sl", .is_untitled = true, .has_colours = has_colours != 0};
		wlb_table_add(&table, (const char *const[]){"failed", "failed"});
		wlb_table_add(&table, (const char *const[]){"no state", "x"});
		assert_int_equal(wlb_table_print(&table, "", out), 0);
		fclose(out);
		assert_string_equal(text, has_colours ? "\033[31mfailed\033[0m    failed\nno state  x\n"
		                                      : "failed    failed\nno state  x\n");
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_are_as_wide_as_their_widest),
		cmocka_unit_test(a_table_fits_its_width),
		cmocka_unit_test(wide_characters_are_cut_whole),
		cmocka_unit_test(states_have_colours),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
