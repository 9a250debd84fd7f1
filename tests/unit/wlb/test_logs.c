/* wlb logs: which file, which of its bytes, and what a terminal gets of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/wlb/logs/output_choice.h"
#include "coordinator/wlb/logs/output_path.h"
#include "coordinator/wlb/logs/rank_lines.h"
#include "coordinator/wlb/logs/terminal_text.h"

static void what_srun_replaces_is_replaced(void **state)
{
	static const struct wlb_output_facts facts = {.job_id = 17,
	                                              .alias = "15_2",
	                                              .step = "17.3",
	                                              .user = "alice",
	                                              .job_name = "train",
	                                              .rank = 5,
	                                              .node = "n3",
	                                              .node_number = 2};
	static const struct {
		const char *pattern, *path;
	} cases[] = {
		{"/a/%j/%t", "/a/17/5"},
		{"/a-%A_%a-%J-%s", "/a-15_2-17.3-3"},
		{"/%3t.%12t.%N.%n.%u.%x", "/005.0000000005.n3.2.alice.train"},
		{"/100%%", "/100%"},
		{"/a\\%t", "/a\\%t"},
	};
	struct wlb_error error;
	char path[64];
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(wlb_output_path(cases[i].pattern, &facts, path, sizeof(path), &error), 0);
		assert_string_equal(path, cases[i].path);
	}
	assert_int_equal(wlb_output_path("/a%q", &facts, path, sizeof(path), &error), -1);
	assert_string_equal(error.message, "%q in /a%q is not known of this attempt");
	assert_int_equal(wlb_output_path("/a%", &facts, path, sizeof(path), &error), -1);
	assert_int_equal(wlb_output_path("/%N%N", &facts, path, 5, &error), -1);
	assert_string_equal(error.message, "the path of /%N%N is longer than 4 bytes");
}

/* Attempt 1 in bytes 10 to 49 of a file, attempt 2 from byte 50 on. `output` is added to both. */
static json_t *run_with(const char *out, const char *more, int world_size)
{
	char text[2048];
	snprintf(text, sizeof(text),
	         "{'run_id':'12','job_id':12,'alias':null,'user':'alice','job_name':'train','attempts':["
	         "{'attempt':1,'nodes':['n1','n2'],'world_size':%d,'rank_map':[{'rank':0,'node':'n1'},{'rank':1,"
	         "'node':'n2'}],'output':{'stdout':'%s','stdout_offset':10,'stderr':'/e','slurm_step':'12.0'%s}},"
	         "{'attempt':2,'nodes':['n2'],'world_size':%d,'rank_map':[{'rank':0,'node':'n2'}],"
	         "'output':{'stdout':'%s','stdout_offset':50,'stderr':'/e','slurm_step':'12.1'%s}},"
	         "{'attempt':3,'nodes':['n2'],'output':null}]}",
	         world_size, out, more, world_size, out, more);
	for (char *c = text; *c != '\0'; c++)
		*c = (char)(*c == '\'' ? '"' : *c);
	json_t *run = json_loads(text, 0, NULL);
	assert_non_null(run);
	return run;
}

static int choose(json_t *run, int rank, int attempt, struct wlb_output_choice *choice, struct wlb_error *error)
{
	const struct wlb_output_asked asked = {.rank = rank, .attempt = attempt};
	int rc = wlb_output_choose(run, &asked, choice, error);
	json_decref(run);
	return rc;
}

static void bytes_of_an_attempt_are_those_up_to_the_next(void **state)
{
	struct wlb_output_choice choice;
	struct wlb_error error;
	(void)state;
	assert_int_equal(choose(run_with("/o", "", 2), -1, 0, &choice, &error), 0);
	assert_string_equal(choice.path, "/o");
	assert_int_equal(choice.attempt, 2);
	assert_int_equal(choice.begin, 0);
	assert_int_equal(choice.end, -1);
	assert_int_equal(choose(run_with("/o", "", 2), -1, 1, &choice, &error), 0);
	assert_int_equal(choice.begin, 10);
	assert_int_equal(choice.end, 50);
	assert_int_equal(choose(run_with("/o", "", 2), -1, 2, &choice, &error), 0);
	assert_int_equal(choice.begin, 50);
	assert_int_equal(choice.end, -1);
	/* Each has a file of its own. */
	assert_int_equal(choose(run_with("/o-%s", "", 2), -1, 1, &choice, &error), 0);
	assert_string_equal(choice.path, "/o-0");
	assert_int_equal(choice.end, -1);
}

static void what_cannot_be_told_is_said(void **state)
{
	static const struct {
		const char *out, *more;
		int world_size, rank, attempt;
		const char *message;
	} cases[] = {
		{"/o", "", 2, 1, 0, "the lines of one rank cannot be told, since srun does not label them"},
		{"/o-%t", "", 2, -1, 0, "in a file for each rank or node, /o-%t: add --rank=N"},
		{"/o-%N", "", 4, 1, 1, "the lines of one rank cannot be told"},
		{"/o-%t", "", 2, 2, 0, "--rank=2: attempt 2 has 2 ranks"},
		{"/o", "", 2, -1, 4, "run 12: has no attempt 4; 'wlb show 12' lists them"},
		{"/o", "", 2, -1, 3, "the coordinator does not tell where its output is"},
		{"", "", 2, -1, 1, "no file that is known"},
		{"/o-%t", ",'stdout_offset':null", 2, 1, 1, "where this one begins is not known"},
	};
	struct wlb_output_choice choice;
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wlb_error error = {0};
		json_t *run = run_with(cases[i].out, cases[i].more, cases[i].world_size);
		assert_int_equal(choose(run, cases[i].rank, cases[i].attempt, &choice, &error), -1);
		if (strstr(error.message, cases[i].message) == NULL)
			fail_msg("case %zu: %s", i, error.message);
	}
}

static void a_rank_is_found(void **state)
{
	struct wlb_output_choice choice;
	struct wlb_error error;
	(void)state;
	assert_int_equal(choose(run_with("/o-%2t", "", 2), 1, 0, &choice, &error), 0);
	assert_string_equal(choice.path, "/o-01");
	assert_false(choice.is_filtered);
	assert_int_equal(choose(run_with("/o-%N", "", 2), 1, 1, &choice, &error), 0);
	assert_string_equal(choice.path, "/o-n2");
	assert_int_equal(choose(run_with("/o", ",'labelled':true", 2), 1, 0, &choice, &error), 0);
	assert_true(choice.is_filtered);
	assert_int_equal(choose(run_with("/o", "", 1), 0, 0, &choice, &error), 0);
	assert_false(choice.is_filtered);
}

/* Passes the text in parts of each length: the result must not depend on them. */
static void expect_lines(int rank, const char *text, const char *expected)
{
	for (size_t part = 1; part <= strlen(text); part++) {
		struct wlb_rank_lines lines = {.rank = rank};
		char got[512];
		size_t used = 0;
		for (size_t at = 0; at < strlen(text); at += part) {
			size_t count = strlen(text) - at < part ? strlen(text) - at : part;
			used += wlb_rank_lines_pass(&lines, text + at, count, got + used);
		}
		got[used] = '\0';
		assert_string_equal(got, expected);
	}
}

static void labelled_lines_are_chosen(void **state)
{
	(void)state;
	expect_lines(3, "03: a\n13: b\n03: c 13: d\nsrun: error: x\n  3: e\n3 f\n3:g\n: h\n03: \xff\x1b[1m\n",
	             "03: a\n03: c 13: d\n  3: e\n03: \xff\x1b[1m\n");
	expect_lines(3, "00000000000000000003: a\n3: b", "3: b");
}

static void expect_text(const char *text, size_t length, const char *expected)
{
	for (size_t part = 1; part <= length; part++) {
		struct wlb_terminal_text shown = {.held_bytes = 0};
		char got[WLB_TERMINAL_ROOM(512)];
		size_t used = 0;
		for (size_t at = 0; at < length; at += part) {
			size_t count = length - at < part ? length - at : part;
			used += wlb_terminal_text_pass(&shown, text + at, count, got + used);
		}
		got[used] = '\0';
		assert_string_equal(got, expected);
	}
}

#define EXPECT(text, expected) expect_text(text, sizeof(text) - 1, expected)

static void a_terminal_gets_nothing_that_acts_on_it(void **state)
{
	(void)state;
	EXPECT("loss\t2.5\r\n\xc3\xa4 \xf0\x9f\x98\x80", "loss\t2.5\r\n\xc3\xa4 \xf0\x9f\x98\x80");
	EXPECT("\x1b[1;31mred\x1b[0m\x1b[m", "\x1b[1;31mred\x1b[0m\x1b[m");
	EXPECT("a\x1b[2Jb\x1b]0;title\x07"
	       "c\x1b[6n",
	       "a [2Jb ]0;title c [6n");
	EXPECT("\x08\x7f\0\x9b"
	       "2J\xc2\x9b",
	       "   \xef\xbf\xbd"
	       "2J ");
	EXPECT("\xe2\x80\xae"
	       "x\xff\xc3",
	       " x\xef\xbf\xbd");
	EXPECT("\x1b[1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1mz", " [1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1mz");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_srun_replaces_is_replaced),
		cmocka_unit_test(bytes_of_an_attempt_are_those_up_to_the_next),
		cmocka_unit_test(what_cannot_be_told_is_said),
		cmocka_unit_test(a_rank_is_found),
		cmocka_unit_test(labelled_lines_are_chosen),
		cmocka_unit_test(a_terminal_gets_nothing_that_acts_on_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
