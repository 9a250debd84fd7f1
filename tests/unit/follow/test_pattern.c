/* Patterns find what Python's re finds, refuse what takes exponential time, and are bounded in program and time. */
#include "follow/pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static struct wlb_error error;

/* The spans as "begin-end", each group after the other; "none" without a match. */
static const char *find(const char *pattern, const char *line)
{
	static char text[256];
	struct wlb_pattern_span spans[WLB_PATTERN_GROUPS_MOST];
	struct wlb_pattern *compiled = wlb_pattern_compile(pattern, &error);
	if (compiled == NULL)
		return error.message;
	char *to = text;
	strcpy(text, "none");
	if (wlb_pattern_match(compiled, line, strlen(line), spans))
		for (int i = 0; i < wlb_pattern_groups(compiled); i++)
			to += sprintf(to, "%s%d-%d", i > 0 ? " " : "", spans[i].begin, spans[i].end);
	wlb_pattern_free(compiled);
	return text;
}

static void patterns_find_what_re_finds(void **state)
{
	static const struct {
		const char *pattern, *line, *found;
	} cases[] = {
		{"abc", "xabcx", "1-4"},
		{"a|ab", "ab", "0-1"},
		{"(a+)(a*)", "aaa", "0-3 0-3 3-3"},
		{"(a+?)(a*)", "aaa", "0-3 0-1 1-3"},
		{"^b", "ab", "none"},
		{"b$", "ab", "1-2"},
		{"$", "ab", "2-2"},
		{"\\bstep\\b", "steps step", "6-10"},
		{"[^\\d.]+", "1.5ms", "3-5"},
		{"[]a-c-]+", "x]b-y", "1-4"},
		{"\\x41[\\x42-\\x43]", "ABC", "0-2"},
		{"a{2,3}", "aaaa", "0-3"},
		{"a{2}b{0,1}c{1,}", "aacc", "0-4"},
		{"a{x", "a{x", "0-3"},
		{"(?:(a)|b)*", "ab", "0-2 0-1"},
		{"loss[:=] *(?P<loss>[-+.\\deE]+)", "step 3 loss= 2.5e-1,", "7-19 13-19"},
		{"(?<a>x)?y", "y", "0-1 -1--1"},
		{"\\S+\\s\\W\\D", "ab =c", "0-5"},
		{"", "a", "0-0"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(find(cases[i].pattern, cases[i].line), cases[i].found);
}

static void what_is_not_bounded_is_refused_with_its_place(void **state)
{
	static const struct {
		const char *pattern, *why;
	} cases[] = {
		{"(a)\\1", "at byte 5: backreferences"},
		{"(?=a)", "at byte 1: lookaround"},
		{"(?!a)", "lookaround"},
		{"(?<=a)b", "lookaround"},
		{"(?i)a", "flags"},
		{"(?P=n)", "lookaround"},
		{"(a", "has no )"},
		{"a)", "closes no group"},
		{"[a", "has no ]"},
		{"[b-a]", "backwards"},
		{"*a", "nothing before it"},
		{"a**", "follow each other"},
		{"a{101}", "n <= 100"},
		{"a{3,2}", "n <= 100"},
		{"\\", "backslash ends it"},
		{"\\q", "not known"},
		{"(?P<a>x)(?P<a>y)", "used twice"},
		{"(?P<a b>x)", "letters"},
		{"(a{100}){100}", "more than 512 instructions"},
		{"(((a{50}){50}){50}){50}", "more than 512 instructions"},
		{"()()()()()()()()()()()()", "more than 11 groups"},
		{"((((((((((((((((((((((((((((((((((a))))))))))))))))))))))))))))))))))", "more than"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		error.message[0] = '\0';
		find(cases[i].pattern, "a");
		if (strstr(error.message, cases[i].why) == NULL)
			fail_msg("%s: '%s' does not say '%s'", cases[i].pattern, error.message, cases[i].why);
	}
	char text[WLB_PATTERN_BYTES_MOST + 2];
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_non_null(strstr(find(text, "a"), "at most 1000"));
}

/* Both take exponential time where a matcher goes back. */
static void the_worst_patterns_end(void **state)
{
	enum { BYTES = 8192 };
	static char line[BYTES + 1];
	const char *const patterns[] = {"(a*)*b", "(a|a)*b", "(?:(?:(?:(?:a?){9}){9}){2}){0}x", "(?:a?){100}a{100}c"};
	(void)state;
	memset(line, 'a', BYTES);
	clock_t begin = clock();
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		assert_string_equal(find(patterns[i], line), "none");
	assert_true((double)(clock() - begin) / CLOCKS_PER_SEC < 10);
	assert_string_equal(find("(?:(?:(?:(?:(?:(?:(?:){100}){100}){100}){100}){100}){100}){100}b", "ab"), "1-2");
}

static void groups_have_their_names(void **state)
{
	struct wlb_pattern *pattern = wlb_pattern_compile("(?P<step>\\d+) (x) (?<loss_2>.)", &error);
	(void)state;
	assert_non_null(pattern);
	assert_int_equal(wlb_pattern_groups(pattern), 4);
	assert_string_equal(wlb_pattern_group_name(pattern, 0), "");
	assert_string_equal(wlb_pattern_group_name(pattern, 1), "step");
	assert_string_equal(wlb_pattern_group_name(pattern, 2), "");
	assert_string_equal(wlb_pattern_group_name(pattern, 3), "loss_2");
	wlb_pattern_free(pattern);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patterns_find_what_re_finds),
		cmocka_unit_test(what_is_not_bounded_is_refused_with_its_place),
		cmocka_unit_test(the_worst_patterns_end),
		cmocka_unit_test(groups_have_their_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
