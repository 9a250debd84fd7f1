/* What `wlb show` prints of an attempt that hung. */
#include "coordinator/wlb/history/standstills.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static json_t *rank_json(int rank, const char *frame)
{
	return json_pack("{s:s, s:i, s:s, s:[{s:s, s:[s, s]}]}", "node", rank < 4 ? "n1" : "n2", "rank", rank, "state",
	                 "S", "threads", "state", "S", "frames", frame, "main+0x1 (train)");
}

/* Eight ranks; those from `first` on are in functions of their own. */
static json_t *stacks_json(int first)
{
	json_t *ranks = json_array();
	for (int i = 0; i < 8; i++) {
		char frame[64] = "PMPI_Wait+0x7 (libmpi.so.40)";
		if (i >= first)
			snprintf(frame, sizeof(frame), "f%d+0x1 (train)", i);
		json_array_append_new(ranks, rank_json(i, frame));
	}
	return json_pack("{s:o, s:n}", "ranks", ranks, "layout");
}

/* What is written; the caller frees it. */
static char *clusters_of(json_t *stacks, int columns)
{
	struct wlb_error error = {""};
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	assert_int_equal(wlb_standstill_clusters(stacks, columns, out, &error), 0);
	fclose(out);
	json_decref(stacks);
	return text;
}

static void test_clusters_and_suspects(void **state)
{
	(void)state;
	char *text = clusters_of(stacks_json(7), 80);
	assert_string_equal(text, "  7 ranks: 0-6: PMPI_Wait (libmpi.so.40)\n"
	                          "  1 rank, suspect: 7: f7 (train)\n");
	free(text);
	text = clusters_of(stacks_json(5), 34);
	assert_string_equal(text, "  5 ranks: 0-4: PMPI_Wait (libm...\n"
	                          "  1 rank, suspect: 5: f5 (train)\n"
	                          "  1 rank, suspect: 6: f6 (train)\n"
	                          "  1 rank, suspect: 7: f7 (train)\n"
	                          "  all ranks outside the largest cluster are of node n2\n");
	free(text);
	text = clusters_of(stacks_json(2), 80);
	assert_non_null(strstr(text, "\n  and 3 smaller clusters\n"));
	free(text);
}

static void test_a_line_is_cut_between_characters(void **state)
{
	json_t *ranks = json_array();
	json_array_append_new(ranks, rank_json(0, "größenverhältnis+0x1 (train)"));
	(void)state;
	for (int columns = 13; columns <= 33; columns++) {
		char *text = clusters_of(json_pack("{s:O, s:n}", "ranks", ranks, "layout"), columns);
		json_t *valid = json_string(text); /* NULL: it is not UTF-8 */
		assert_non_null(valid);
		json_decref(valid);
		free(text);
	}
	json_decref(ranks);
}

static void test_stacks_that_are_none(void **state)
{
	struct wlb_error error = {""};
	json_t *stacks = json_pack("{s:s}", "ranks", "none");
	(void)state;
	assert_int_equal(wlb_standstill_clusters(stacks, 80, stdout, &error), -1);
	assert_non_null(strstr(error.message, "no list of ranks"));
	json_decref(stacks);
}

static void test_calls(void **state)
{
	json_t *verdict = json_loads(
		"{\"calls\":[{\"communicator\":\"dp\",\"kind\":\"all_reduce\",\"sequence\":41,\"inside\":[0,1,3],"
		"\"inside_count\":3,\"missing\":[2],\"missing_count\":1},"
		"{\"communicator\":\"tp\",\"kind\":null,\"sequence\":7,\"inside\":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,"
		"15],\"inside_count\":64,\"missing\":[],\"missing_count\":0},"
		"{\"communicator\":\"pp.0-1\",\"kind\":\"send\",\"sequence\":9,\"inside\":[],\"inside_count\":0,"
		"\"missing\":[0,1],\"missing_count\":2}]}",
		0, NULL);
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	(void)state;
	wlb_standstill_calls(verdict, out);
	wlb_standstill_calls(NULL, out);
	fclose(out);
	assert_string_equal(text, "  all_reduce of dp, number 41: entered by 0-1,3, not by 2\n"
	                          "  call of tp, number 7: entered by all, not left by 0-15 and others, 64 in all\n"
	                          "  send of pp.0-1, number 9: entered by no rank, not by 0-1\n");
	free(text);
	json_decref(verdict);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clusters_and_suspects),
		cmocka_unit_test(test_a_line_is_cut_between_characters),
		cmocka_unit_test(test_stacks_that_are_none),
		cmocka_unit_test(test_calls),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
