/* The page of `wlb top`: its text, and that it is never wider or longer than the terminal. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/wlb/top/page.h"
#include "coordinator/wlb/top/progress.h"
#include "tests/unit/wlb/top_reply.h"

/* Draws the page into a text, which the caller frees. Takes the reply. */
static char *page_of(json_t *reply, struct wlb_top_frame frame, enum wlb_top_by by, const char *note)
{
	struct wlb_top_view view = {.run = reply};
	struct wlb_error error = {0};
	char *text = NULL;
	size_t size;
	if (wlb_top_ranks_read(reply, &view.ranks, &error) != 0)
		fail_msg("%s", error.message);
	view.steps = json_pack("[{s:f, s:i}, {s:f, s:i}]", "step_time_s", 0.5, "tokens_per_s", 6000, "step_time_s", 1.5,
	                       "tokens_per_s", 7000);
	frame.out = open_memstream(&text, &size);
	assert_int_equal(wlb_top_page_draw(&frame, &view, by, note), 0);
	fclose(frame.out);
	wlb_top_view_free(&view);
	return text;
}

/* Checks the lines of a page that is not live, or of a live one without its codes. Returns how many there are. */
static int check_lines(const char *text, int columns)
{
	int lines = 0, column = 0;
	for (const char *at = text; *at != '\0'; at++) {
		if (*at == '\033') { /* CSI ... letter */
			at += strcspn(at, "HJKm");
			continue;
		}
		if (*at == '\n') {
			lines++;
			column = 0;
		} else if (*at != '\r' && ((unsigned char)*at & 0xc0) != 0x80) {
			column++;
		}
		if (column > columns)
			fail_msg("line %d has more than %d columns: %.200s", lines + 1, columns, at - columns);
	}
	return lines;
}

static void test_a_page(void **state)
{
	const struct wlb_layout layout = {.tp = 2, .cp = 1, .pp = 1, .dp = 4};
	(void)state;
	json_t *reply = top_reply_new(&layout, 4);
	for (int rank = 1; rank < 8; rank += 2)
		if (rank != 5)
			top_reply_wait(reply, rank, "dp", 51, 34600);
	top_reply_wait(reply, 4, "tp", 101, 34600);
	top_reply_set(reply, 5, "step", json_integer(39));
	top_reply_set(reply, 5, "for_ms", json_integer(250600));
	top_reply_forget(reply, 6);
	char *text = page_of(reply, (struct wlb_top_frame){.columns = 80}, WLB_TOP_BY_NODE, "");
	assert_string_equal(text, "Run 12: running, attempt 2, tp=2,cp=1,pp=1,dp=4, on n[1-2]\n"
	                          "step 40 of 90, loss 4.1657, 6500 tokens/s, 0:50 left\n"
	                          "7 of 8 ranks reported, 0.4 to 0.4 s ago\n"
	                          "S starting  L loading  C computing  V saving  E evaluating  D ending  R running\n"
	                          "small letter: waits in a call   T stopped  G process gone  ? not reported\n"
	                          "+ for 10 s or 1 step behind  * 30 s or 2 steps  ! 120 s or 4 steps, or T, G\n"
	                          "n1 C c*C c*  n2 c*C!? c*\n"
	                          "Ranks that need attention\n"
	                          "C! rank 5 on n2: computing for 4:11, step 39 (2 behind)\n"
	                          "c* rank 1 on n1: in all_reduce of dp for 35.0 s; computing for 0.9 s, step 41\n"
	                          "c* rank 3 on n1: in all_reduce of dp for 35.0 s; computing for 0.9 s, step 41\n"
	                          "Collectives in progress\n"
	                          "dp all_reduce 51, 64.0 KiB, for 35.0 s: 3 of 4 ranks have entered: 1,3,7\n"
	                          "   not entered: 5; 5 on n2: computing for 4:11\n"
	                          "tp all_reduce 101, 64.0 KiB, for 35.0 s: 1 of 2 ranks have entered: 4\n"
	                          "   not entered: 5; 5 on n2: computing for 4:11\n");
	free(text);
}

/* Of a trainer that reports nothing, the state of its processes is known. */
static void test_another_trainer(void **state)
{
	const struct wlb_layout layout = {.tp = 1, .cp = 1, .pp = 1, .dp = 4};
	(void)state;
	json_t *reply = top_reply_new(&layout, 2);
	for (int rank = 0; rank < 4; rank++) {
		top_reply_set(reply, rank, "step", json_null());
		top_reply_set(reply, rank, "for_ms", json_null());
		top_reply_set(reply, rank, "activity", json_string("running"));
	}
	top_reply_set(reply, 3, "process", json_string("stopped"));
	char *text = page_of(reply, (struct wlb_top_frame){.columns = 80}, WLB_TOP_BY_NODE, "");
	assert_non_null(strstr(text, "4 of 4 ranks reported"));
	assert_non_null(strstr(text, "\nn1 R R   n2 R T!\n"
	                             "Ranks that need attention\n"
	                             "T! rank 3 on n2: its process is stopped\n"));
	free(text);
}

static void test_who_comes_late_to_calls(void **state)
{
	const struct wlb_layout layout = {.tp = 1, .cp = 1, .pp = 1, .dp = 8};
	(void)state;
	json_t *reply = top_reply_new(&layout, 4);
	top_reply_set(reply, 1, "late_us", json_integer(999));
	top_reply_set(reply, 2, "late_us", json_integer(-5000000));
	char *text = page_of(json_deep_copy(reply), (struct wlb_top_frame){.columns = 80}, WLB_TOP_BY_NODE, "");
	assert_null(strstr(text, "Last to enter collectives"));
	free(text);
	top_reply_set(reply, 3, "late_us", json_integer(21300));
	top_reply_set(reply, 4, "late_us", json_integer(1000));
	top_reply_set(reply, 6, "late_us", json_integer(1234567));
	text = page_of(reply, (struct wlb_top_frame){.columns = 80}, WLB_TOP_BY_NODE, "");
	assert_non_null(strstr(text, "\nLast to enter collectives: rank 6 on n2 by 1235 ms, rank 3 on n1 by 21 ms\n"));
	free(text);
}

static void test_verdicts(void **state)
{
	const struct wlb_layout layout = {.tp = 1, .cp = 1, .pp = 1, .dp = 4};
	(void)state;
	json_t *reply = top_reply_new(&layout, 2);
	top_reply_accuse(
		reply, 3, "hang", "confirmed",
		"rank 3 on n2 has computed since step 39 for 250 s; ranks 0-2 wait for it in all_reduce 51 of dp");
	top_reply_accuse(reply, 1, "slow_compute", "suspected", "rank 1 takes 12 % longer than its peers");
	top_reply_accuse(reply, 0, "slow_loader", "over", "it is over");
	top_reply_accuse(reply, 3, "crash", "suspected", "a second verdict of the same rank");
	top_reply_accuse(reply, 2, "slow_compute", "suspected", "the fourth that is open");
	top_reply_forget(reply, 2);
	char *text = page_of(json_deep_copy(reply), (struct wlb_top_frame){.columns = 80}, WLB_TOP_BY_NODE, "");
	assert_non_null(strstr(text,
	                       "# a verdict names it\n"
	                       "n1 C C#  n2 ?#C#\n"
	                       "Verdicts\n"
	                       "# hang confirmed: rank 3 on n2, for 4:11, costs 100 %; action: evict\n"
	                       "   rank 3 on n2 has computed since step 39 for 250 s; ranks 0-2 wait for it i...\n"
	                       "# slow compute suspected: rank 1 on n1, for 4:11, costs 100 %; action: evict\n"
	                       "   rank 1 takes 12 % longer than its peers\n"
	                       "# crash suspected: rank 3 on n2, for 4:11, costs 100 %; action: evict\n"
	                       "   a second verdict of the same rank\n"
	                       "1 more: wlb faults 12\n"
	                       "Ranks that need attention\n"
	                       "C# rank 3 on n2: computing for 0.9 s, step 41\n"
	                       "?# rank 2 on n2: not reported\n"
	                       "C# rank 1 on n1: computing for 0.9 s, step 41\n"));
	free(text);
	text = page_of(reply, (struct wlb_top_frame){.columns = 80, .is_coloured = true}, WLB_TOP_BY_NODE, "");
	assert_non_null(strstr(text, "\033[35mC#\033[0m  n2 \033[35m?#\033[0m\033[1;31mC#\033[0m"));
	free(text);
}

static void test_verdicts_that_are_no_verdicts(void **state)
{
	static const char *const wrong[] = {
		"7", "[7, null, \"x\", [], {}]",
		"[{\"ranks\":[-1, 99, 1000000000, 1e300, \"x\", null], \"rank_count\":-1, \"since_s\":\"x\"}]",
		"[{\"ranks\":{}, \"kind\":3, \"state\":[], \"nodes\":7, \"evidence\":null, \"cost_percent\":\"x\"}]"};
	const struct wlb_layout one = {.tp = 1, .cp = 1, .pp = 1, .dp = 2};
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		json_t *reply = top_reply_new(&one, 2);
		json_object_set_new(reply, "verdicts", json_loads(wrong[i], JSON_DECODE_ANY, NULL));
		char *text = page_of(reply, (struct wlb_top_frame){.columns = 80}, WLB_TOP_BY_NODE, "");
		assert_non_null(strstr(text, "\nn1 C C "));
		check_lines(text, 80);
		free(text);
	}
}

static void test_colours(void **state)
{
	const struct wlb_layout one = {.tp = 1, .cp = 1, .pp = 1, .dp = 1};
	(void)state;
	for (int is_coloured = 0; is_coloured <= 1; is_coloured++) {
		json_t *reply = top_reply_new(&one, 1);
		top_reply_set(reply, 0, "process", json_string("stopped"));
		char *text = page_of(reply, (struct wlb_top_frame){.columns = 80, .is_coloured = is_coloured},
		                     WLB_TOP_BY_NODE, "");
		assert_int_equal(strchr(text, '\033') != NULL, is_coloured);
		assert_int_equal(strstr(text, "n1 \033[1;31mT!\033[0m") != NULL, is_coloured);
		check_lines(text, 80);
		free(text);
	}
}

/* A reply of that many ranks in which much is wrong: long names, long lists of ranks, old calls. */
static json_t *troubled(int ranks)
{
	int per_node = ranks < 8 ? ranks : 8, tp = per_node >= 2 ? 2 : 1;
	const struct wlb_layout layout = {.tp = tp, .cp = 1, .pp = 1, .dp = ranks / tp};
	json_t *reply = top_reply_new(&layout, per_node);
	for (int rank = 0; rank < ranks; rank++) {
		if (rank % 3 == 0)
			top_reply_wait(reply, rank, "dp", 1000051, 100000000);
		if (rank % 5 == 0)
			top_reply_set(reply, rank, "step", json_integer(1));
		if (rank % 11 == 2)
			top_reply_accuse(reply, rank, "hang_in_communication", rank % 2 ? "confirmed" : "suspected",
			                 "evidence that is far longer than a line of a terminal can ever be, as it "
			                 "may be for a verdict");
		if (rank % 7 == 3)
			top_reply_forget(reply, rank);
	}
	json_object_set_new(reply, "reason", json_sprintf("%200s", "a long reason"));
	json_array_set_new(json_object_get(reply, "nodes"), 0, json_sprintf("%0100d.example.org", 1));
	return reply;
}

static void test_never_wider_or_longer(void **state)
{
	static const int sizes[] = {1, 8, 64, 2048, 16384};
	static const int terminals[][2] = {{80, 24}, {80, 50}, {40, 10}, {20, 5}, {200, 60}, {1, 1}, {80, 0}};
	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (size_t t = 0; t < sizeof(terminals) / sizeof(terminals[0]); t++) {
			for (int by = WLB_TOP_BY_NODE; by <= WLB_TOP_BY_DP; by++) {
				struct wlb_top_frame frame = {.columns = terminals[t][0],
				                              .rows = terminals[t][1],
				                              .is_live = terminals[t][1] > 0,
				                              .is_coloured = t % 2 == 0};
				char *text = page_of(troubled(sizes[i]), frame, (enum wlb_top_by)by,
				                     "31 s old: the coordinator does not answer, for a long reason");
				int lines = check_lines(text, frame.columns);
				assert_true(frame.rows == 0 || lines < frame.rows);
				free(text);
			}
		}
	}
}

static void expect_line(const char *text, const char *line)
{
	if (strstr(text, line) != NULL)
		return;
	fputs(text, stderr); /* cmocka cuts messages */
	fail_msg("the page does not have '%s'", line);
}

static void test_many_ranks_are_cells_of_nodes(void **state)
{
	const struct wlb_layout layout = {.tp = 8, .cp = 1, .pp = 1, .dp = 2048};
	(void)state;
	json_t *reply = top_reply_new(&layout, 8);
	top_reply_set(reply, 9871, "for_ms", json_integer(200000));
	top_reply_wait(reply, 9870, "tp", 101, 200000);
	top_reply_set(reply, 9872, "for_ms", json_integer(35000));
	char *text = page_of(json_deep_copy(reply), (struct wlb_top_frame){.columns = 80}, WLB_TOP_BY_NODE, "");
	expect_line(text, "\nn1    C C C ");
	expect_line(text, "C! rank 9871 on n1234: computing for 3:20, step 41\n"
	                  "c! rank 9870 on n1234: in all_reduce of tp for 3:20; computing for 0.9 s, step 4\n"
	                  "C* rank 9872 on n1235: computing for 35.4 s, step 41\n"
	                  "Collectives in progress\n"
	                  "tp all_reduce 101, 64.0 KiB, for 3:20: 1 of 8 ranks have entered: 9870\n"
	                  "   not entered: 9864-9869,9871; 9871 on n1234: computing for 3:20\n");
	expect_line(text, "C C!C*C ");
	free(text);
	text = page_of(reply, (struct wlb_top_frame){.columns = 80, .rows = 24, .is_live = true}, WLB_TOP_BY_NODE, "");
	expect_line(text, "\033[K1826 more, the worst: rank 9871 on n1234 C!");
	free(text);
}

static void test_progress(void **state)
{
	char text[256];
	(void)state;
	json_t *run = json_pack("{s:n, s:n, s:n}", "last_step", "train_iters", "last_loss");
	wlb_progress_format(run, NULL, text, sizeof(text));
	assert_string_equal(text, "step - of -, loss -, - tokens/s, - left");
	json_decref(run);
	run = json_pack("{s:i, s:i, s:f}", "last_step", 11, "train_iters", 90, "last_loss", 4.16571);
	json_t *steps = json_pack("[{s:f, s:n}, {s:n, s:i}]", "step_time_s", 2.0, "tokens_per_s", "step_time_s",
	                          "tokens_per_s", 6766);
	wlb_progress_format(run, steps, text, sizeof(text));
	assert_string_equal(text, "step 11 of 90, loss 4.1657, 6766 tokens/s, 2:38 left");
	json_decref(steps);
	json_decref(run);
}

static void test_wide_characters_keep_columns_in_line(void **state)
{
	char *text = NULL;
	size_t size;
	(void)state;
	setlocale(LC_CTYPE, "C.UTF-8");
	struct wlb_top_frame frame = {.out = open_memstream(&text, &size), .columns = 9};
	wlb_top_put_padded(&frame, WLB_TOP_PLAIN, "训练训", 5);
	wlb_top_put(&frame, WLB_TOP_PLAIN, "|训练训");
	wlb_top_end_line(&frame);
	fclose(frame.out);
	assert_string_equal(text, "训练 |训\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_page),
		cmocka_unit_test(test_another_trainer),
		cmocka_unit_test(test_wide_characters_keep_columns_in_line),
		cmocka_unit_test(test_who_comes_late_to_calls),
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_verdicts_that_are_no_verdicts),
		cmocka_unit_test(test_colours),
		cmocka_unit_test(test_never_wider_or_longer),
		cmocka_unit_test(test_many_ranks_are_cells_of_nodes),
		cmocka_unit_test(test_progress),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
