/* The ranks of a reply: their places, letters and marks, and the calls that they wait in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/wlb/top/calls.h"
#include "coordinator/wlb/top/rank_state.h"
#include "coordinator/wlb/top/ranks.h"
#include "coordinator/wlb/top/sections.h"
#include "tests/unit/wlb/top_reply.h"

static const struct wlb_layout layout = {.tp = 2, .cp = 2, .pp = 2, .dp = 2};

static struct wlb_top_ranks read_it(const json_t *reply)
{
	struct wlb_top_ranks ranks;
	struct wlb_error error = {0};
	if (wlb_top_ranks_read(reply, &ranks, &error) != 0)
		fail_msg("%s", error.message);
	return ranks;
}

static void test_places(void **state)
{
	static const int ranks_on[] = {3, 1, 4};
	static const int node_of[] = {0, 1, 2, 0, 2, 0, 2, 2};
	const struct wlb_layout four = {.tp = 2, .cp = 1, .pp = 1, .dp = 4};
	const struct wlb_nodes nodes = {.count = 3, .ranks_on = ranks_on};
	int next[3] = {0};
	(void)state;
	json_t *reply = top_reply_new(&four, 3);
	for (int rank = 0; rank < 8; rank++)
		top_reply_set(reply, rank, "node", json_integer(node_of[rank]));
	struct wlb_top_ranks ranks = read_it(reply);
	for (int rank = 0; rank < 8; rank++) {
		int place = (int)wlb_nodes_place(&nodes, node_of[rank], next[node_of[rank]]++);
		assert_int_equal(ranks.list[rank].place, place);
		assert_int_equal(ranks.list[rank].at.dp, wlb_layout_coordinates(&four, place).dp);
	}
	wlb_top_ranks_free(&ranks);
	top_reply_set(reply, 5, "node", json_null()); /* then ranks are in the order of places */
	ranks = read_it(reply);
	for (int rank = 0; rank < 8; rank++)
		assert_int_equal(ranks.list[rank].place, rank);
	wlb_top_ranks_free(&ranks);
	json_object_set_new(json_object_get(reply, "layout"), "dp", json_integer(3)); /* two ranks are idle */
	ranks = read_it(reply);
	assert_int_equal(ranks.list[5].place, 5);
	assert_int_equal(ranks.list[6].place, -1);
	wlb_top_ranks_free(&ranks);
	json_decref(reply);
}

static void test_replies_that_are_wrong(void **state)
{
	static const struct {
		int rank;
		const char *column;
		int value;
	} wrong[] = {{3, "rank", 4}, {0, "node", 2}, {0, "node", -2}};
	struct wlb_top_ranks ranks;
	struct wlb_error error;
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		json_t *reply = top_reply_new(&layout, 8);
		top_reply_set(reply, wrong[i].rank, wrong[i].column, json_integer(wrong[i].value));
		assert_int_equal(wlb_top_ranks_read(reply, &ranks, &error), -1);
		wlb_top_ranks_free(&ranks);
		json_decref(reply);
	}
	json_t *reply = json_pack("{s:i}", "ranks", 3);
	assert_int_equal(wlb_top_ranks_read(reply, &ranks, &error), -1);
	wlb_top_ranks_free(&ranks);
	json_decref(reply);
	reply = top_reply_new(&layout, 8);
	top_reply_set(reply, 0, "call", json_pack("[s, i, i, i, i]", "send", 2, 1, 1, 1)); /* it has two groups */
	ranks = read_it(reply);
	assert_null(ranks.list[0].call);
	wlb_top_ranks_free(&ranks);
	json_decref(reply);
}

/* The letter and mark of rank 0 after a change. */
static void expect_state(json_t *reply, const char *cell)
{
	struct wlb_top_ranks ranks = read_it(reply);
	struct wlb_top_state found = wlb_top_state_of(&ranks, &ranks.list[0]);
	char text[3] = {found.letter, found.mark, '\0'};
	assert_string_equal(text, cell);
	wlb_top_ranks_free(&ranks);
}

static void test_letters_and_marks(void **state)
{
	static const struct {
		const char *column, *text;
		int number;
		const char *cell;
	} changes[] = {
		{"activity", "starting", 0, "S "},  {"activity", "loading", 0, "L "},
		{"activity", "computing", 0, "C "}, {"activity", "saving", 0, "V "},
		{"activity", "ending", 0, "D "},    {"activity", "evaluating", 0, "E "},
		{"activity", "dreaming", 0, "? "},  {"process", "stopped", 0, "T!"},
		{"process", "gone", 0, "G!"},       {"for_ms", NULL, 9500, "C "},
		{"for_ms", NULL, 9600, "C+"},       {"for_ms", NULL, 29600, "C*"},
		{"for_ms", NULL, 119600, "C!"},     {"step", NULL, 40, "C+"},
		{"step", NULL, 39, "C*"},           {"step", NULL, 37, "C!"},
		{"age_ms", NULL, 4999, "C "},       {"age_ms", NULL, 5000, "C+"},
		{"age_ms", NULL, 10000, "C*"},      {"age_ms", NULL, 30000, "C!"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		json_t *reply = top_reply_new(&layout, 8);
		const char *text = changes[i].text;
		top_reply_set(reply, 0, changes[i].column,
		              text != NULL ? json_string(text) : json_integer(changes[i].number));
		expect_state(reply, changes[i].cell);
		json_decref(reply);
	}
	json_t *reply = top_reply_new(&layout, 8);
	top_reply_set(reply, 0, "for_ms", json_integer(500000));
	top_reply_wait(reply, 0, "tp", 101, 29600); /* what counts is the time in the call */
	expect_state(reply, "c*");
	top_reply_forget(reply, 0);
	expect_state(reply, "? ");
	json_decref(reply);
}

static void test_the_worst(void **state)
{
	(void)state;
	json_t *reply = top_reply_new(&layout, 16);
	top_reply_forget(reply, 0);
	top_reply_wait(reply, 5, "tp", 101, 40000);
	top_reply_set(reply, 6, "for_ms", json_integer(35000)); /* shorter, but it does not wait for others */
	top_reply_set(reply, 7, "for_ms", json_integer(32000));
	struct wlb_top_ranks ranks = read_it(reply);
	struct wlb_top_sections sections;
	assert_int_equal(wlb_top_sections_make(&ranks, WLB_TOP_BY_NODE, &sections), 0);
	assert_int_equal(sections.count, 1);
	assert_int_equal(wlb_top_section_worst(&ranks, &sections, 0)->rank, 6);
	wlb_top_sections_free(&sections);
	wlb_top_ranks_free(&ranks);
	json_decref(reply);
}

/* ---- sections ---------------------------------------------------------------------------------------------------- */

static void expect_sections(const json_t *reply, enum wlb_top_by by, int count, int second, const char *label,
                            const int *members)
{
	struct wlb_top_ranks ranks = read_it(reply);
	struct wlb_top_sections sections;
	assert_int_equal(wlb_top_sections_make(&ranks, by, &sections), 0);
	assert_int_equal(sections.count, count);
	const struct wlb_top_section *section = &sections.list[second];
	assert_string_equal(section->label, label);
	for (int i = 0; i < section->count; i++)
		assert_int_equal(ranks.list[sections.members[section->first + i]].rank, members[i]);
	wlb_top_sections_free(&sections);
	wlb_top_ranks_free(&ranks);
}

static void test_sections(void **state)
{
	(void)state;
	json_t *reply = top_reply_new(&layout, 8);
	expect_sections(reply, WLB_TOP_BY_NODE, 2, 1, "n2", (const int[]){8, 9, 10, 11, 12, 13, 14, 15});
	expect_sections(reply, WLB_TOP_BY_TP, 8, 1, "cp1 pp0 dp0", (const int[]){2, 3});
	expect_sections(reply, WLB_TOP_BY_CP, 8, 1, "tp1 pp0 dp0", (const int[]){1, 3});
	expect_sections(reply, WLB_TOP_BY_PP, 8, 1, "tp1 cp0 dp0", (const int[]){1, 5});
	expect_sections(reply, WLB_TOP_BY_DP, 8, 1, "tp1 cp0 pp0", (const int[]){1, 9});
	json_object_set_new(json_object_get(reply, "layout"), "dp", json_integer(1)); /* half of the ranks are idle */
	expect_sections(reply, WLB_TOP_BY_TP, 5, 4, "idle", (const int[]){8, 9, 10, 11, 12, 13, 14, 15});
	json_object_set_new(reply, "layout", json_null());
	expect_sections(reply, WLB_TOP_BY_DP, 2, 0, "n1", (const int[]){0, 1, 2, 3, 4, 5, 6, 7});
	json_decref(reply);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static void expect_list(const int *found, int found_count, const char *text)
{
	char list[256] = "";
	for (int i = 0; i < found_count; i++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%d", i > 0 ? "," : "", found[i]);
	assert_string_equal(list, text);
}

/* The call of one caller: which ranks are in it and which are not. */
static void expect_members(const struct wlb_top_ranks *ranks, const struct wlb_top_rank *caller, const char *inside,
                           const char *missing, int unknown)
{
	struct wlb_top_members members;
	assert_int_equal(wlb_top_members_find(ranks, caller, &members), 0);
	expect_list(members.inside, members.inside_count, inside);
	expect_list(members.outside, members.outside_count, missing);
	assert_int_equal(members.unknown_count, unknown);
	wlb_top_members_free(&members);
}

static void test_oldest_calls(void **state)
{
	const struct wlb_layout wide = {.tp = 2, .cp = 1, .pp = 1, .dp = 4};
	const struct wlb_top_rank *callers[WLB_TOP_CALLS_MAX];
	(void)state;
	json_t *reply = top_reply_new(&wide, 8);
	for (int rank = 0; rank < 6; rank += 2)
		top_reply_wait(reply, rank, "tp", 101, 1000 * rank + 500); /* 3 groups, of which 2 are shown */
	for (int rank = 1; rank < 8; rank += 2)
		top_reply_wait(reply, rank, "dp", 51, 7000 + 10 * rank); /* one group; rank 7 waits longest */
	struct wlb_top_ranks ranks = read_it(reply);
	assert_int_equal(wlb_top_calls_find(&ranks, callers), 3);
	assert_int_equal(callers[0]->rank, 7);
	assert_int_equal(callers[1]->rank, 4);
	assert_int_equal(callers[2]->rank, 2);
	expect_members(&ranks, callers[0], "1,3,5,7", "", 0);
	expect_members(&ranks, callers[1], "4", "5", 0);
	wlb_top_ranks_free(&ranks);
	json_decref(reply);
}

static void test_members_that_have_not_entered(void **state)
{
	const struct wlb_layout wide = {.tp = 2, .cp = 1, .pp = 1, .dp = 8};
	const struct wlb_top_rank *callers[WLB_TOP_CALLS_MAX];
	(void)state;
	json_t *reply = top_reply_new(&wide, 8);
	top_reply_wait(reply, 0, "dp", 51, 3000);
	top_reply_wait(reply, 2, "dp", 51, 2000);
	top_reply_wait(reply, 4, "dp", 52, 100);                /* it has left the call */
	top_reply_set(reply, 8, "age_ms", json_integer(3399));  /* sent just after rank 0 entered */
	top_reply_set(reply, 10, "age_ms", json_integer(3400)); /* and before */
	top_reply_forget(reply, 12);
	top_reply_set(reply, 14, "groups", json_pack("[]")); /* it has not made any call yet */
	struct wlb_top_ranks ranks = read_it(reply);
	assert_int_equal(wlb_top_calls_find(&ranks, callers), 2); /* 51 and 52 */
	expect_members(&ranks, callers[0], "0,2", "6,8,14", 2);
	wlb_top_ranks_free(&ranks);
	json_object_set_new(reply, "layout", json_null()); /* then only the caller is known */
	ranks = read_it(reply);
	assert_int_equal(wlb_top_calls_find(&ranks, callers), 2); /* more of a kind are not shown */
	expect_members(&ranks, callers[0], "0", "", 0);
	wlb_top_ranks_free(&ranks);
	json_decref(reply);
}

/* Gives the rank one group with these counts, and lets it wait in call `seq` where that is above 0. */
static void set_group(json_t *reply, int rank, const char *name, int size, int entered, int seq)
{
	int left = seq > 0 ? seq - 1 : entered;
	top_reply_set(reply, rank, "groups", json_pack("[[s, i, i, i]]", name, size, entered, left));
	if (seq > 0)
		top_reply_set(reply, rank, "call", json_pack("[s, i, i, i, i]", "recv", 0, seq, 4, 5000));
}

static void test_groups_that_are_a_part(void **state)
{
	static const struct {
		const char *name;
		int size;
		const char *missing; /* of the ranks in the group of rank 0 */
	} groups[] = {{"tp", 4, "1,2,3"}, {"kv", 2, "1"},         {"pp 0>1", 2, "8"}, {"pp_back 1>0", 2, "8"},
	              {"cp", 2, "4"},     {"data", 4, "4,16,20"}, {"dp", 2, "16"},    {"dp", 4, "4,16,20"},
	              {"unknown", 2, ""}, {"tied", 2, "8"},       {"tpx", 4, ""}};
	const struct wlb_layout all = {.tp = 4, .cp = 2, .pp = 2, .dp = 2};
	const struct wlb_top_rank *callers[WLB_TOP_CALLS_MAX];
	(void)state;
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		json_t *reply = top_reply_new(&all, 8);
		for (int rank = 0; rank < 32; rank++)
			set_group(reply, rank, groups[i].name, groups[i].size, rank == 0 ? 7 : 6, rank == 0 ? 7 : 0);
		struct wlb_top_ranks ranks = read_it(reply);
		assert_int_equal(wlb_top_calls_find(&ranks, callers), 1);
		expect_members(&ranks, callers[0], "0", groups[i].missing, 0);
		wlb_top_ranks_free(&ranks);
		json_decref(reply);
	}
}

static void test_an_edge_has_two_ranks(void **state)
{
	const struct wlb_layout stages = {.tp = 1, .cp = 1, .pp = 4, .dp = 1};
	const struct wlb_top_rank *callers[WLB_TOP_CALLS_MAX];
	(void)state;
	json_t *reply = top_reply_new(&stages, 4);
	set_group(reply, 1, "pp 1>2", 2, 7, 7);
	set_group(reply, 2, "pp 1>2", 2, 6, 0);
	struct wlb_top_ranks ranks = read_it(reply);
	assert_int_equal(wlb_top_calls_find(&ranks, callers), 1);
	expect_members(&ranks, callers[0], "1", "2", 0);
	wlb_top_ranks_free(&ranks);
	json_decref(reply);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_replies_that_are_wrong),
		cmocka_unit_test(test_letters_and_marks),
		cmocka_unit_test(test_the_worst),
		cmocka_unit_test(test_sections),
		cmocka_unit_test(test_oldest_calls),
		cmocka_unit_test(test_members_that_have_not_entered),
		cmocka_unit_test(test_groups_that_are_a_part),
		cmocka_unit_test(test_an_edge_has_two_ranks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
