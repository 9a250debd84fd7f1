/* What `wlb stacks` prints of a reply of the coordinator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/wlb/output/rank_text.h"
#include "coordinator/wlb/stacks/page.h"

static json_t *rank_json(int rank, const char *state, const char *frames)
{
	json_t *list = frames != NULL ? json_loads(frames, 0, NULL) : json_array();
	char node[16];
	assert_non_null(list);
	snprintf(node, sizeof(node), "n%d", rank / 4 + 1);
	return json_pack(
		"{s:s, s:i, s:i, s:s, s:s, s:i, s:[{s:i, s:i, s:s, s:s, s:s, s:o}], s:[[s, s, i, i, f, f], [s, s, "
		"i, i, f, n]]}",
		"node", node, "rank", rank, "pid", 100 + rank, "state", state, "note", "", "left_out", 3, "threads",
		"pid", 100 + rank, "tid", 100 + rank, "name", "python3", "state", state, "waits_in", "futex_wait",
		"frames", list, "calls", "send", "pp.0-1", 41, 65536, 0.5, 12.25, "all_reduce", "dp", 7, 512, 12.0);
}

#define WAITING "[\"poll+0x1 (libc.so.6)\",\"PMPI_Wait+0x%d (libmpi.so.40)\",\"step+0x9 (train)\",\"main+0x1 (train)\"]"
#define COMPUTING "[\"sgemm+0x5 (libblas.so.3)\",\"step+0x2 at step.c:3 (train)\",\"main+0x1 (train)\"]"

/* Eight ranks of tp=2, pp=4 on two nodes; those of `computing` compute, and `unknown` has no stack. */
static json_t *reply_of(const char *computing, int unknown)
{
	json_t *ranks = json_array();
	for (int i = 0; i < 8; i++) {
		char frames[256], number[16];
		snprintf(frames, sizeof(frames), WAITING, i);
		snprintf(number, sizeof(number), "%d", i);
		int computes = strstr(computing, number) != NULL;
		json_array_append_new(ranks, rank_json(i, i == unknown ? "D" : "R",
		                                       i == unknown ? NULL
		                                       : computes   ? COMPUTING
		                                                    : frames));
	}
	return json_pack(
		"{s:s, s:s, s:i, s:i, s:n, s:{s:i, s:i, s:i, s:i}, s:i, s:[{s:i, s:i, s:n, s:i, s:i, s:i}], s:o, "
		"s:i}",
		"run_id", "12", "state", "running", "attempt", 2, "stacks_id", 17, "asked_at", "layout", "tp", 2, "cp",
		1, "pp", 4, "dp", 1, "world_size", 8, "gatherings", "attempt", 2, "stacks_id", 17, "asked_at",
		"nodes_asked", 3, "nodes", 2, "ranks", 8, "ranks", ranks, "left_out", 0);
}

/* The page, or that of one rank; the caller frees it. */
static char *page_of(json_t *reply, int rank)
{
	struct wlb_gathered gathered;
	struct wlb_error error = {""};
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	assert_int_equal(wlb_gathered_read(reply, &gathered, &error), 0);
	if (rank < 0)
		wlb_stacks_page_print(&gathered, 80, out);
	else
		assert_int_equal(wlb_stacks_page_print_rank(&gathered, rank, 80, out, &error), 0);
	fclose(out);
	assert_int_equal(wlb_stacks_page_print_rank(&gathered, 8, 80, stdout, &error), -1);
	assert_string_equal(error.message, "rank 8: no stacks of it were gathered");
	wlb_gathered_free(&gathered);
	json_decref(reply);
	return text;
}

static void one_rank_differs(void **state)
{
	(void)state;
	char *page = page_of(reply_of("5", -1), -1);
	assert_string_equal(page, "Run 12, attempt 2: stacks of 8 of 8 ranks, gathered at -\n"
	                          "1 of 3 nodes have not answered.\n"
	                          "\n"
	                          "7 ranks: 0-4,6-7\n"
	                          "  PMPI_Wait (libmpi.so.40)\n"
	                          "  step (train)\n"
	                          "  main (train)\n"
	                          "\n"
	                          "1 rank, suspect: 5\n"
	                          "  sgemm (libblas.so.3)\n"
	                          "  step at step.c:3 (train)\n"
	                          "  main (train)\n"
	                          "\n"
	                          "Rank 5 on n2, process 105: running\n"
	                          "  Thread 105 of process 105, python3: running\n"
	                          "    futex_wait (kernel)\n"
	                          "    sgemm+0x5 (libblas.so.3)\n"
	                          "    step+0x2 at step.c:3 (train)\n"
	                          "    main+0x1 (train)\n"
	                          "  and 3 more threads\n"
	                          "  Its last calls, the newest last:\n"
	                          "    send of pp.0-1, number 41, 64.0 KiB: took 0.5 s, ended 12.2 s ago\n"
	                          "    all_reduce of dp, number 7, 512 B: in progress for 12.0 s\n");
	free(page);
}

static void what_outliers_share_is_named(void **state)
{
	(void)state;
	char *page = page_of(reply_of("45", -1), -1);
	assert_non_null(
		strstr(page, "All ranks outside the largest cluster are of the tp group of cp 0, pp 2, dp 0.\n"));
	free(page);
	page = page_of(reply_of("57", -1), -1);
	assert_non_null(strstr(page, "All ranks outside the largest cluster are of node n2.\n"));
	free(page);
	page = page_of(reply_of("37", -1), -1);
	assert_non_null(
		strstr(page, "All ranks outside the largest cluster are of the pp group of tp 1, cp 0, dp 0.\n"));
	free(page);
}

static void the_age_is_said(void **state)
{
	json_t *reply = reply_of("5", -1);
	(void)state;
	json_object_set_new(reply, "asked_at", json_string("2026-01-01T00:00:00Z"));
	char *page = page_of(reply, -1), *age = strstr(page, "\nThey are ");
	assert_non_null(age);
	assert_non_null(strstr(age, " old.\n1 of 3 nodes have not answered.\n"));
	free(page);
}

static void nobody_is_suspect(void **state)
{
	(void)state;
	char *page = page_of(reply_of("", -1), -1);
	assert_non_null(strstr(page, "\nNo rank is suspect: the stacks of all are alike.\n"));
	free(page);
	page = page_of(reply_of("0123", -1), -1);
	assert_non_null(strstr(page, "\nNo rank is suspect: no cluster has more than half of the ranks.\n"));
	free(page);
}

static void of_a_rank_without_a_stack_its_state_counts(void **state)
{
	(void)state;
	char *page = page_of(reply_of("", 6), -1);
	assert_non_null(strstr(page, "1 rank, suspect: 6\n  futex_wait, state D, no stack (kernel)\n"));
	assert_non_null(strstr(page, "Rank 6 on n2, process 106: in uninterruptible sleep in the kernel\n"));
	free(page);
}

static void lines_are_cut(void **state)
{
	(void)state;
	char frame[201], frames[256];
	memset(frame, 'f', 200);
	frame[200] = '\0';
	snprintf(frames, sizeof(frames), "[\"%s\"]", frame);
	json_t *reply = reply_of("", -1);
	json_array_set_new(json_object_get(reply, "ranks"), 2, rank_json(2, "T", frames));
	char *page = page_of(reply, 2), *rest = NULL;
	assert_non_null(strstr(page, "Rank 2 on n1, process 102: stopped by a signal\n"));
	for (char *line = strtok_r(page, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
		assert_in_range(strlen(line), 1, 80);
	free(page);
}

static void replies_that_are_none_are_refused(void **state)
{
	(void)state;
	static const char *const texts[] = {"{}",
	                                    "{\"ranks\":7}",
	                                    "{\"ranks\":[7]}",
	                                    "{\"ranks\":[{}]}",
	                                    "{\"ranks\":[{\"rank\":1},{\"rank\":1}]}",
	                                    "{\"ranks\":[{\"rank\":-1}]}",
	                                    "{\"ranks\":[{\"rank\":1,\"threads\":[{\"frames\":[7]}]}]}"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct wlb_gathered gathered;
		struct wlb_error error = {""};
		json_t *reply = json_loads(texts[i], 0, NULL);
		assert_int_equal(wlb_gathered_read(reply, &gathered, &error), -1);
		assert_true(error.message[0] != '\0');
		wlb_gathered_free(&gathered);
		json_decref(reply);
	}
}

static void ranges_of_ranks(void **state)
{
	(void)state;
	static const int ranks[] = {0, 1, 2, 5, 7, 8, 100};
	char text[64];
	wlb_ranks_format(ranks, 7, 60, text, sizeof(text));
	assert_string_equal(text, "0-2,5,7-8,100");
	wlb_ranks_format(ranks, 7, 9, text, sizeof(text));
	assert_string_equal(text, "0-2,5,...");
	wlb_ranks_format(ranks, 7, 2, text, sizeof(text));
	assert_string_equal(text, "...");
	wlb_ranks_format(ranks, 0, 9, text, sizeof(text));
	assert_string_equal(text, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_rank_differs),
		cmocka_unit_test(what_outliers_share_is_named),
		cmocka_unit_test(the_age_is_said),
		cmocka_unit_test(nobody_is_suspect),
		cmocka_unit_test(of_a_rank_without_a_stack_its_state_counts),
		cmocka_unit_test(lines_are_cut),
		cmocka_unit_test(replies_that_are_none_are_refused),
		cmocka_unit_test(ranges_of_ranks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
