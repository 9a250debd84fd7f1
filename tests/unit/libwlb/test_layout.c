/* Policies as users write them, coordinates of ranks, and layouts that fit or are refused. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/libwlb/models.h"

static struct wlb_policy parse(const char *text)
{
	struct wlb_policy policy;
	struct wlb_error error;
	if (wlb_policy_parse(text, &policy, &error) < 0)
		fail_msg("%s", error.message);
	return policy;
}

static void test_policies(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		enum wlb_policy_kind kind;
		struct wlb_layout fixed;
		const char *formatted;
	} cases[] = {
		{"off", WLB_POLICY_OFF, {0, 0, 0, 0}, "off"},
		{"auto", WLB_POLICY_AUTO, {0, 0, 0, 0}, "auto"},
		{"tp=2,cp=3,pp=4", WLB_POLICY_FIXED, {2, 3, 4, 0}, "tp=2,cp=3,pp=4"},
		{"dp=5,pp=4,cp=3,tp=2", WLB_POLICY_FIXED, {2, 3, 4, 5}, "tp=2,cp=3,pp=4,dp=5"},
		{"tp=8", WLB_POLICY_FIXED, {8, 1, 1, 0}, "tp=8,cp=1,pp=1"},
		{"dp=1", WLB_POLICY_FIXED, {1, 1, 1, 1}, "tp=1,cp=1,pp=1,dp=1"},
		{"tp=999999,cp=000001", WLB_POLICY_FIXED, {999999, 1, 1, 0}, "tp=999999,cp=1,pp=1"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wlb_policy policy = parse(cases[i].text);
		char text[64];
		assert_int_equal(policy.kind, cases[i].kind);
		assert_memory_equal(&policy.fixed, &cases[i].fixed, sizeof(policy.fixed));
		assert_int_equal(wlb_policy_format(&policy, text, sizeof(text)), strlen(cases[i].formatted));
		assert_string_equal(text, cases[i].formatted);
	}
}

static void test_refused_policies(void **state)
{
	(void)state;
	static const char *const texts[] = {"",       "bogus",      "AUTO",        "auto ",     "tp",
	                                    "tp=",    "tp=0",       "tp=-1",       "tp=2,",     ",tp=2",
	                                    "tp=2;",  "tp=2 cp=1",  "tp=2,tp=2",   "tp=2,xp=1", "tp=1000000",
	                                    "tp=0x2", "tp=2,,cp=1", "tp=2,cp=1.5", "tp=+2",     "off,tp=2"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct wlb_policy policy;
		struct wlb_error error;
		char quoted[64];
		if (wlb_policy_parse(texts[i], &policy, &error) == 0)
			fail_msg("'%s' was taken for a policy", texts[i]);
		snprintf(quoted, sizeof(quoted), "layout '%s': ", texts[i]);
		assert_non_null(strstr(error.message, quoted));
		assert_non_null(strstr(error.message, "such as tp=2,cp=1,pp=2"));
	}
	struct wlb_policy policy;
	assert_int_equal(wlb_policy_parse(NULL, &policy, NULL), -1);
}

static void test_every_rank_has_its_place(void **state)
{
	(void)state;
	const struct wlb_layout layout = {.tp = 2, .cp = 3, .pp = 4, .dp = 5};
	char seen[2][3][4][5] = {0};
	assert_int_equal(wlb_layout_ranks(&layout), 120);
	for (int rank = 0; rank < 120; rank++) {
		struct wlb_coordinates coords = wlb_layout_coordinates(&layout, rank);
		assert_in_range(coords.tp, 0, 1);
		assert_in_range(coords.cp, 0, 2);
		assert_in_range(coords.pp, 0, 3);
		assert_in_range(coords.dp, 0, 4);
		assert_int_equal(seen[coords.tp][coords.cp][coords.pp][coords.dp]++, 0);
		assert_int_equal(wlb_layout_place(&layout, &coords), rank);
	}
	/* tp next to each other, then cp, pp, dp outermost. */
	struct wlb_coordinates coords = wlb_layout_coordinates(&layout, 1 + 2 * (2 + 3 * (3 + 4 * 4)));
	assert_true(coords.tp == 1 && coords.cp == 2 && coords.pp == 3 && coords.dp == 4);
}

/* "462": ranks of the nodes "a", "b" and "c". */
static struct wlb_nodes nodes_of(const char *digits)
{
	static int ranks_on[8];
	static char *const names[] = {"a", "b", "c", "d"};
	struct wlb_nodes nodes = {.ranks_on = ranks_on, .names = names};
	for (; digits[nodes.count] != '\0'; nodes.count++)
		ranks_on[nodes.count] = digits[nodes.count] - '0';
	return nodes;
}

static void test_ranks_take_places_node_by_node(void **state)
{
	(void)state;
	struct wlb_nodes nodes = nodes_of("322");
	const int64_t first[] = {0, 3, 5};
	assert_int_equal(wlb_nodes_ranks(&nodes), 7);
	for (int node = 0; node < 3; node++) {
		for (int i = 0; i < wlb_nodes_ranks_on(&nodes, node); i++)
			assert_int_equal(wlb_nodes_place(&nodes, node, i), first[node] + i);
		assert_int_equal(wlb_nodes_place(&nodes, node, wlb_nodes_ranks_on(&nodes, node)), -1);
	}
	assert_int_equal(wlb_nodes_place(&nodes, 3, 0), -1);
	assert_int_equal(wlb_nodes_place(&nodes, -1, 0), -1);
	assert_int_equal(wlb_nodes_place(&nodes, 0, -1), -1);
	const int order[] = {2, 0, 1};
	const int64_t first_in_order[] = {2, 5, 0};
	nodes.order = order;
	for (int node = 0; node < 3; node++)
		assert_int_equal(wlb_nodes_place(&nodes, node, 1), first_in_order[node] + 1);
	nodes = (struct wlb_nodes){.count = 3, .ranks_per_node = 4};
	assert_int_equal(wlb_nodes_ranks(&nodes), 12);
	assert_int_equal(wlb_nodes_ranks_on(&nodes, 2), 4);
	assert_int_equal(wlb_nodes_place(&nodes, 2, 3), 11);
	assert_int_equal(wlb_nodes_place(&nodes, 2, 4), -1);
}

static void test_chosen_layouts(void **state)
{
	(void)state;
	const struct {
		const char *policy;
		struct wlb_nodes nodes;
		const char *layout;
	} cases[] = {
		{"auto", {.count = 7, .ranks_per_node = 2}, "tp=1,cp=1,pp=1,dp=14"},
		{"off", {.count = 1, .ranks_per_node = 8}, "tp=1,cp=1,pp=1,dp=8"},
		{"tp=4,cp=2,pp=2", {.count = 8, .ranks_per_node = 8}, "tp=4,cp=2,pp=2,dp=4"},
		{"tp=4,cp=2,pp=2,dp=4", {.count = 16, .ranks_per_node = 4}, "tp=4,cp=2,pp=2,dp=4"},
		{"pp=32", {.count = 32, .ranks_per_node = 1}, "tp=1,cp=1,pp=32,dp=1"},
		{"tp=2", {.count = 3, .ranks_on = (const int[]){4, 6, 2}}, "tp=2,cp=1,pp=1,dp=6"},
		{"dp=7", {.count = 2, .ranks_on = (const int[]){6, 1}}, "tp=1,cp=1,pp=1,dp=7"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wlb_policy policy = parse(cases[i].policy);
		for (int known = 0; known < 2; known++) {
			struct wlb_layout layout;
			struct wlb_error error = {0};
			char text[64];
			if (wlb_layout_choose(&policy, &cases[i].nodes, known ? &llama_3_8b : NULL, &layout, &error) <
			    0)
				fail_msg("%s: %s", cases[i].policy, error.message);
			wlb_layout_format(&layout, text, sizeof(text));
			assert_string_equal(text, cases[i].layout);
		}
	}
}

static void assert_refused(const char *policy_text, const struct wlb_nodes *nodes, const struct wlb_model *shape,
                           const char *reason)
{
	struct wlb_policy policy = parse(policy_text);
	struct wlb_layout layout;
	struct wlb_error error = {0};
	assert_int_equal(wlb_layout_choose(&policy, nodes, shape, &layout, &error), -1);
	if (strstr(error.message, reason) == NULL)
		fail_msg("%s: '%s' expected in: %s", policy_text, reason, error.message);
}

/* Of a caller that fills in the policy itself. */
static void test_degrees_below_one(void **state)
{
	static const struct wlb_layout fixed[] = {{2, 0, 1, 0}, {0, 1, 1, 8}, {1, 1, -1, 0}};
	const struct wlb_nodes nodes = {.count = 1, .ranks_per_node = 8};
	(void)state;
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
		const struct wlb_policy policy = {.kind = WLB_POLICY_FIXED, .fixed = fixed[i]};
		struct wlb_layout layout;
		struct wlb_error error = {0};
		assert_int_equal(wlb_layout_choose(&policy, &nodes, NULL, &layout, &error), -1);
		assert_non_null(strstr(error.message, "each must be at least 1"));
	}
}

/* 2^64, which is 0 in 64 bits, and the largest product. */
static void test_degrees_whose_product_overflows(void **state)
{
	static const struct wlb_layout fixed[] = {{1 << 22, 1 << 22, 1 << 20, 0}, {INT_MAX, INT_MAX, INT_MAX, 0}};
	const struct wlb_nodes nodes = {.count = 1, .ranks_per_node = 8};
	(void)state;
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
		const struct wlb_policy policy = {.kind = WLB_POLICY_FIXED, .fixed = fixed[i]};
		struct wlb_layout layout;
		struct wlb_error error = {0};
		assert_int_equal(wlb_layout_choose(&policy, &nodes, NULL, &layout, &error), -1);
		assert_non_null(strstr(error.message, "tp x cp x pp exceeds 2^63 - 1 and must divide the 8 ranks"));
	}
}

static void test_layouts_that_do_not_fit_the_ranks(void **state)
{
	(void)state;
	const struct {
		const char *policy;
		struct wlb_nodes nodes;
		const char *reason;
	} cases[] = {
		{"auto", {.count = 0, .ranks_per_node = 8}, "0 nodes, 0 ranks: there must be at least 1"},
		{"auto", {.count = 8, .ranks_per_node = 0}, "8 nodes, 0 ranks: there must be at least 1"},
		{"auto", {.count = 999999, .ranks_per_node = 999999}, "at most 2147483647 ranks"},
		{"tp=2,cp=3",
	         {.count = 1, .ranks_per_node = 8},
	         "layout tp=2,cp=3,pp=1: tp x cp x pp is 6 and must divide the 8 ranks there are; start a multiple of "
	         "6, "
	         "or use a smaller tp, cp or pp"},
		{"tp=2,dp=3",
	         {.count = 1, .ranks_per_node = 8},
	         "layout tp=2,cp=1,pp=1,dp=3: tp x cp x pp x dp is 6 and must be the 8 ranks there are; start as many, "
	         "or "
	         "leave dp out where tp x cp x pp divides 8"},
		{"tp=999999,cp=999999,pp=999999,dp=999999", {.count = 1, .ranks_per_node = 8}, "must be the 8 ranks"},
		{"tp=999999,cp=999999,pp=999999", {.count = 1, .ranks_per_node = 8}, "must divide the 8 ranks"},
		{"tp=4",
	         {.count = 4, .ranks_per_node = 2},
	         "layout tp=4,cp=1,pp=1,dp=2: tp must divide the ranks of each node, and node 1 has 2; use tp=1 or 2"},
		{"tp=7", {.count = 2, .ranks_on = (const int[]){6, 1}}, "and node 1 has 6; use tp=1"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_refused(cases[i].policy, &cases[i].nodes, NULL, cases[i].reason);
		assert_refused(cases[i].policy, &cases[i].nodes, &llama_3_8b, "");
	}
	struct wlb_nodes nodes = nodes_of("462");
	assert_refused("tp=4", &nodes, &llama_3_8b,
	               "tp must divide the ranks of each node, and b has 6; use tp=1 or 2");
}

static void test_layouts_that_do_not_fit_the_model(void **state)
{
	(void)state;
	struct wlb_nodes nodes = {.count = 2, .ranks_per_node = 6};
	assert_refused("tp=3", &nodes, &llama_3_8b,
	               "layout tp=3,cp=1,pp=1,dp=4: tp must divide num_attention_heads, 32; use tp=1 or 2");
	struct wlb_model other = llama_3_8b;
	other.num_attention_heads = 12;
	other.num_key_value_heads = 4;
	assert_refused("tp=3", &nodes, &other,
	               "layout tp=3,cp=1,pp=1,dp=4: one of tp and num_key_value_heads, 4, must divide the other; use "
	               "tp=1 or 2");
	nodes = (struct wlb_nodes){.count = 8, .ranks_per_node = 8};
	assert_refused("pp=64", &nodes, &llama_3_8b,
	               "layout tp=1,cp=1,pp=64,dp=1: pp must not exceed num_hidden_layers, 32");
}

/* The messages for a layout alone, with the ranks unknown. */
static void test_layouts_without_ranks(void **state)
{
	(void)state;
	struct wlb_error error = {0};
	assert_int_equal(wlb_layout_check(&(struct wlb_layout){16, 9, 32, 5}, NULL, &llama_3_8b, &error), 0);
	assert_int_equal(wlb_layout_check(&(struct wlb_layout){3, 9, 64, 5}, NULL, NULL, &error), 0);
	assert_int_equal(wlb_layout_check(&(struct wlb_layout){3, 1, 1, 1}, NULL, &llama_3_8b, &error), -1);
	assert_string_equal(error.message, "layout tp=3,cp=1,pp=1,dp=1: tp must divide num_attention_heads, 32; use "
	                                   "tp=1, 2, 4, 8, 16 or 32");
	assert_int_equal(wlb_layout_check(&(struct wlb_layout){1, 1, 0, 1}, NULL, NULL, &error), -1);
	assert_string_equal(error.message, "layout tp=1,cp=1,pp=0,dp=1: each way to split must be at least 1");
}

static void test_errors_carry_their_cause(void **state)
{
	(void)state;
	struct wlb_error error;
	assert_int_equal(wlb_fail(&error, "%s is %d", "x", 3), -1);
	assert_int_equal(wlb_fail_in(&error, "file %s", "f"), -1);
	assert_string_equal(error.message, "file f: x is 3");
	assert_int_equal(wlb_fail(NULL, "x"), -1);
	assert_int_equal(wlb_fail_in(NULL, "x"), -1);
	/* What does not fit is cut at the end; the context stays. */
	char long_text[2000];
	memset(long_text, 'a', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	wlb_fail(&error, "%s", long_text);
	assert_int_equal(strlen(error.message), sizeof(error.message) - 1);
	wlb_fail_in(&error, "context");
	assert_int_equal(strlen(error.message), sizeof(error.message) - 1);
	assert_int_equal(strncmp(error.message, "context: aaa", 12), 0);
	wlb_fail_in(&error, "%s", long_text);
	assert_int_equal(strncmp(error.message, "context: aaa", 12), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_policies),
		cmocka_unit_test(test_refused_policies),
		cmocka_unit_test(test_every_rank_has_its_place),
		cmocka_unit_test(test_ranks_take_places_node_by_node),
		cmocka_unit_test(test_chosen_layouts),
		cmocka_unit_test(test_degrees_below_one),
		cmocka_unit_test(test_degrees_whose_product_overflows),
		cmocka_unit_test(test_layouts_that_do_not_fit_the_ranks),
		cmocka_unit_test(test_layouts_that_do_not_fit_the_model),
		cmocka_unit_test(test_layouts_without_ranks),
		cmocka_unit_test(test_errors_carry_their_cause),
	};
	return cmocka_run_group_tests_name("layout", tests, NULL, NULL);
}
