/* Lists as CSV. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/output/csv.h"

static void expect(json_t *rows, const char *const *fields, bool has_header, const char *expected)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	assert_non_null(rows);
	assert_int_equal(wlb_csv_print(rows, fields, has_header, out), 0);
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
	json_decref(rows);
}

static void values_are_as_in_json(void **state)
{
	static const char *const fields[] = {"run",    "loss", "ok",     "nodes",    "layout.tp",
	                                     "layout", "none", "absent", "deep.a.b", NULL};
	(void)state;
	expect(json_pack("[{s:s, s:f, s:b, s:[s, s], s:{s:i, s:i}, s:n, s:{s:i}}, {s:I, s:f}]", "run", "12", "loss",
	                 0.1, "ok", 1, "nodes", "n1", "n2", "layout", "tp", 2, "cp", 1, "none", "deep", "a", 7, "run",
	                 (json_int_t)-9007199254740993, "loss", -1.0 / 3),
	       fields, true,
	       "run,loss,ok,nodes,layout.tp,layout,none,absent,deep.a.b\r\n"
	       "12,0.1,true,n1 n2,2,\"{\"\"tp\"\":2,\"\"cp\"\":1}\",,,\r\n"
	       "-9007199254740993,-0.3333333333333333,,,,,,,\r\n");
	expect(json_array(), fields + 8, true, "deep.a.b\r\n");
	expect(json_array(), fields, false, "");
}

static void expect_text(const char *text, const char *expected)
{
	static const char *const fields[] = {"a", NULL};
	char line[256];
	snprintf(line, sizeof(line), "%s\r\n", expected);
	expect(json_pack("[{s:s}]", "a", text), fields, false, line);
}

static void texts_are_quoted_where_they_must(void **state)
{
	(void)state;
	expect_text("a b;c", "a b;c");
	expect_text("a,b", "\"a,b\"");
	expect_text("say \"no\"", "\"say \"\"no\"\"\"");
	expect_text(" a", "\" a\"");
	expect_text("a ", "\"a \"");
	expect_text("", "");
	expect_text("gr\u00f6\u00dfe \u4e00", "gr\u00f6\u00dfe \u4e00");
}

/* A name of a job must not command the terminal, nor end its line. */
static void control_characters_become_spaces(void **state)
{
	(void)state;
	expect_text("a\x1b[2J\r\nb\xc2\x9b"
	            "31m\u202ec",
	            "a [2J  b 31m c");
	expect_text("\tx", "\" x\"");
	static const char *const fields[] = {"a", NULL};
	expect(json_pack("[{s:{s:i}}]", "a", "\xc2\x9b", 1), fields, false, "\"{\"\"\\u009B\"\":1}\"\r\n");
}

static void formulas_are_texts(void **state)
{
	(void)state;
	expect_text("=HYPERLINK(1)", "'=HYPERLINK(1)");
	expect_text("=1,2", "\"'=1,2\"");
	expect_text("+1", "'+1");
	expect_text("-x", "'-x");
	expect_text("@sum", "'@sum");
	expect_text("\t=1", "' =1");
	expect_text("\uff1d1", "'\uff1d1");
	expect_text("a=1", "a=1");
	expect_text("'=1", "'=1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_as_in_json),
		cmocka_unit_test(texts_are_quoted_where_they_must),
		cmocka_unit_test(control_characters_become_spaces),
		cmocka_unit_test(formulas_are_texts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
