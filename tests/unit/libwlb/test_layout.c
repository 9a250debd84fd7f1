/* Policies as users write them, coordinates of ranks, and layouts that fit or are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "libwlb/wlb.h"

static const struct wlb_model model = {.hidden_size = 4096,
                                       .intermediate_size = 14336,
                                       .num_hidden_layers = 32,
                                       .num_attention_heads = 32,
                                       .num_key_value_heads = 8,
                                       .head_dim = 128,
                                       .vocab_size = 128256,
                                       .max_position_embeddings = 8192,
                                       .rope_theta = 500000.0,
                                       .rms_norm_eps = 1e-5};

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
		struct wlb_coordinates at = wlb_layout_coordinates(&layout, rank);
		assert_in_range(at.tp, 0, 1);
		assert_in_range(at.cp, 0, 2);
		assert_in_range(at.pp, 0, 3);
		assert_in_range(at.dp, 0, 4);
		assert_int_equal(seen[at.tp][at.cp][at.pp][at.dp]++, 0);
		assert_int_equal(wlb_layout_rank(&layout, &at), rank);
	}
	/* tp next to each other, then cp, pp, dp outermost. */
	struct wlb_coordinates at = wlb_layout_coordinates(&layout, 1 + 2 * (2 + 3 * (3 + 4 * 4)));
	assert_true(at.tp == 1 && at.cp == 2 && at.pp == 3 && at.dp == 4);
}

static void test_chosen_layouts(void **state)
{
	(void)state;
	static const struct {
		const char *policy;
		int ranks;
		int ranks_per_node;
		const char *layout;
	} cases[] = {
		{"auto", 7, 2, "tp=1,cp=1,pp=1,dp=7"},
		{"off", 8, 8, "tp=1,cp=1,pp=1,dp=8"},
		{"tp=4,cp=2,pp=2", 64, 8, "tp=4,cp=2,pp=2,dp=4"},
		{"tp=4,cp=2,pp=2,dp=4", 64, 4, "tp=4,cp=2,pp=2,dp=4"},
		{"pp=32", 32, 1, "tp=1,cp=1,pp=32,dp=1"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wlb_policy policy = parse(cases[i].policy);
		struct wlb_layout layout;
		struct wlb_error error;
		char text[64];
		assert_int_equal(
			wlb_layout_choose(&policy, &model, cases[i].ranks, cases[i].ranks_per_node, &layout, &error),
			0);
		wlb_layout_format(&layout, text, sizeof(text));
		assert_string_equal(text, cases[i].layout);
	}
}

static void test_layouts_that_do_not_fit(void **state)
{
	(void)state;
	static const struct {
		const char *policy;
		int ranks;
		int ranks_per_node;
		const char *reason;
	} cases[] = {
		{"auto", 0, 8, "0 ranks"},
		{"auto", 8, 0, "0 to a node"},
		{"tp=2,cp=3", 8, 8, "is 6 and must divide the 8 ranks"},
		{"tp=2,dp=3", 8, 8, "must be the 8 ranks"},
		{"tp=8,dp=2", 8, 8, "must be the 8 ranks"},
		{"tp=3", 6, 3, "tp must divide num_attention_heads, 32"},
		{"tp=4", 8, 2, "tp must divide the 2 ranks of a node"},
		{"pp=64", 64, 8, "pp must not exceed num_hidden_layers, 32"},
		{"tp=999999,cp=999999,pp=999999,dp=999999", 8, 8, "must be the 8 ranks"},
		{"tp=999999,cp=999999,pp=999999", 8, 8, "must"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wlb_policy policy = parse(cases[i].policy);
		struct wlb_layout layout;
		struct wlb_error error;
		assert_int_equal(
			wlb_layout_choose(&policy, &model, cases[i].ranks, cases[i].ranks_per_node, &layout, &error),
			-1);
		if (strstr(error.message, cases[i].reason) == NULL)
			fail_msg("%s: '%s' expected in: %s", cases[i].policy, cases[i].reason, error.message);
	}
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
		cmocka_unit_test(test_chosen_layouts),
		cmocka_unit_test(test_layouts_that_do_not_fit),
		cmocka_unit_test(test_errors_carry_their_cause),
	};
	return cmocka_run_group_tests_name("layout", tests, NULL, NULL);
}
