#include "coordinator/wlbd/rules/decision.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct wlbd_decision_facts plain = {
	.tasks_per_node = 2,
	.policy = {.kind = WLB_POLICY_AUTO},
	.previous_exit_code = WLBD_EXIT_UNKNOWN,
	.program_step = -1,
};

static struct wlbd_decision decide(const struct wlbd_decision_facts *facts)
{
	struct wlbd_decision decision;
	assert_int_equal(wlbd_decide(facts, &decision), 0);
	return decision;
}

/* The facts of a run on `count` nodes. */
static struct wlbd_decision_facts facts_of(struct wlbd_candidate_node *nodes, int count)
{
	struct wlbd_decision_facts facts = plain;
	facts.nodes = nodes;
	facts.node_count = count;
	return facts;
}

static void assert_says(const struct wlbd_decision *decision, const char *words)
{
	if (strstr(decision->reason, words) == NULL)
		fail_msg("'%s' is not in: %s", words, decision->reason);
}

static void test_first_attempt_uses_all(void **state)
{
	struct wlbd_candidate_node nodes[] = {{.name = "n1"}, {.name = "n2"}, {.name = "n3"}, {.name = "n4"}};
	struct wlbd_decision_facts facts = facts_of(nodes, 4);
	(void)state;
	struct wlbd_decision d = decide(&facts);
	assert_int_equal(d.verb, WLBD_START);
	assert_int_equal(d.use_count, 4);
	assert_int_equal(d.spare_count, 0);
	assert_int_equal(wlb_layout_ranks(&d.layout), 8);
	assert_string_equal(d.reason, "4 nodes");
	wlbd_decision_free(&d);
}

static void test_lost_nodes_are_excluded(void **state)
{
	struct wlbd_candidate_node nodes[] = {{.name = "n1", .down = true},
	                                      {.name = "n2"},
	                                      {.name = "n3", .silent = true},
	                                      {.name = "n4", .failed = "was lost twice"},
	                                      {.name = "n5"},
	                                      {.name = "n6", .evicted = true}};
	struct wlbd_decision_facts facts = facts_of(nodes, 6);
	(void)state;
	facts.first_total = 6;
	facts.previous_exit_code = 137;
	struct wlbd_decision d = decide(&facts);
	assert_int_equal(d.verb, WLBD_START);
	assert_int_equal(d.use_count, 2);
	assert_int_equal(d.use[0], 1);
	assert_int_equal(d.use[1], 4);
	assert_says(&d, "n1 is down");
	assert_says(&d, "n3 is lost");
	assert_says(&d, "n4 was lost twice");
	assert_says(&d, "n6 was evicted");
	assert_says(&d, "2 nodes remain");
	wlbd_decision_free(&d);
}

/* A node that did not answer at the first attempt is used once it does. */
static void test_a_node_that_was_unavailable_at_first(void **state)
{
	struct wlbd_candidate_node nodes[] = {{.name = "n1"}, {.name = "n2"}, {.name = "n3"}, {.name = "n4"}};
	struct wlbd_decision_facts facts = facts_of(nodes, 4);
	(void)state;
	facts.first_total = 3;
	facts.previous_exit_code = WLBD_EXIT_SAVED;
	struct wlbd_decision d = decide(&facts);
	assert_int_equal(d.use_count, 4);
	wlbd_decision_free(&d);
	facts.spares = 1;
	d = decide(&facts);
	assert_int_equal(d.use_count, 3);
	assert_int_equal(d.spare_count, 1);
	wlbd_decision_free(&d);
}

/* A launcher that may grow waits for no others. */
static void test_nodes_that_may_return(void **state)
{
	static const struct {
		struct wlbd_candidate_node node;
		bool may_return;
	} cases[] = {
		{{.silent = true}, true},
		{{.down = true}, true},
		{{.name = "n1"}, false},
		{{.silent = true, .failed = "was lost twice"}, false},
		{{.down = true, .failed = "failed again and again"}, false},
		{{.silent = true, .evicted = true}, false},
		{{.silent = true, .avoided = "was lost in 2 runs"}, false},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(wlbd_node_may_return(&cases[i].node), cases[i].may_return);
}

/* A launcher checks no others. */
static void test_nodes_that_may_pass(void **state)
{
	static const struct {
		struct wlbd_candidate_node node;
		bool may_pass;
	} cases[] = {
		{{.evicted = true}, true},
		{{.failed = "failed again and again"}, true},
		{{.failed = "was lost twice", .evicted = true}, true},
		{{.name = "n1"}, false},
		{{.avoided = "failed a check"}, false},
		{{.evicted = true, .avoided = "failed a check"}, false},
		{{.failed = "was lost twice", .avoided = "was lost in 2 runs"}, false},
		{{.evicted = true, .silent = true}, false},
		{{.failed = "was lost twice", .down = true}, false},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(wlbd_node_may_pass(&cases[i].node), cases[i].may_pass);
}

/* The neighbours under the fewest switches; the others are spares. */
static void test_nodes_of_few_switches(void **state)
{
	static const struct {
		const char *leaves;
		int spares;
		const char *use;
	} cases[] = {
		{"aabb", 0, "0123"}, {"aabb", 2, "0123"}, {"abbc", 2, "1203"}, {"abbb", 1, "1230"}, {"aabb", 1, "0123"},
		{"abcc", 2, "2301"}, {"abcd", 3, "0123"}, {"aab ", 1, "0123"}, {"    ", 2, "0123"},
	};
	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		char leaf[4][2] = {{0}};
		struct wlbd_candidate_node nodes[4] = {{.name = "n1"}, {.name = "n2"}, {.name = "n3"}, {.name = "n4"}};
		struct wlbd_decision_facts facts = plain;
		for (int i = 0; i < 4; i++) {
			leaf[i][0] = cases[c].leaves[i];
			nodes[i].leaf = leaf[i][0] != ' ' ? leaf[i] : NULL;
		}
		facts.nodes = nodes;
		facts.node_count = 4;
		facts.spares = cases[c].spares;
		struct wlbd_decision d = decide(&facts);
		assert_int_equal(d.use_count, 4 - cases[c].spares);
		for (int i = 0; i < 4; i++)
			assert_int_equal(d.use[i], cases[c].use[i] - '0');
		wlbd_decision_free(&d);
	}
}

static void test_spares_step_in(void **state)
{
	struct wlbd_candidate_node nodes[] = {{.name = "n1"}, {.name = "n2"}, {.name = "n3"}, {.name = "n4"}};
	struct wlbd_decision_facts facts = facts_of(nodes, 4);
	(void)state;
	facts.spares = 1;
	struct wlbd_decision d = decide(&facts);
	assert_int_equal(d.use_count, 3);
	assert_int_equal(d.spare_count, 1);
	assert_int_equal(d.use[3], 3);
	wlbd_decision_free(&d);

	facts.first_total = 4;
	nodes[1].silent = true;
	d = decide(&facts);
	assert_int_equal(d.use_count, 3); /* as many as before: the spare is one of them */
	assert_int_equal(d.spare_count, 0);
	assert_int_equal(d.use[2], 3);
	wlbd_decision_free(&d);
}

static void test_spares_never_starve_the_run(void **state)
{
	struct wlbd_candidate_node nodes[] = {{.name = "n1"}, {.name = "n2"}};
	struct wlbd_decision_facts facts = facts_of(nodes, 2);
	(void)state;
	facts.spares = 5;
	struct wlbd_decision d = decide(&facts);
	assert_int_equal(d.verb, WLBD_START);
	assert_int_equal(d.use_count, 1);
	wlbd_decision_free(&d);
}

static void test_out_of_nodes(void **state)
{
	struct wlbd_candidate_node nodes[] = {{.name = "n1"}, {.name = "n2", .silent = true}};
	struct wlbd_decision_facts facts = facts_of(nodes, 2);
	(void)state;
	facts.first_total = 2;
	facts.min_nodes = 2;
	struct wlbd_decision d = decide(&facts);
	assert_int_equal(d.verb, WLBD_STOP_OUT_OF_NODES);
	assert_says(&d, "n2 is lost; 1 node remains, and the run needs at least 2 (--wlb-min-nodes)");
	wlbd_decision_free(&d);

	nodes[0].down = true;
	facts.min_nodes = 0;
	d = decide(&facts);
	assert_int_equal(d.verb, WLBD_STOP_OUT_OF_NODES);
	wlbd_decision_free(&d);
}

static void test_fixed_layout(void **state)
{
	struct wlbd_candidate_node nodes[] = {{.name = "n1"}, {.name = "n2"}, {.name = "n3"}, {.name = "n4"}};
	struct wlbd_decision_facts facts = facts_of(nodes, 4);
	struct wlb_error error;
	(void)state;
	assert_int_equal(wlb_policy_parse("tp=2,pp=2", &facts.policy, &error), 0);
	struct wlbd_decision d = decide(&facts);
	assert_int_equal(d.verb, WLBD_START);
	assert_int_equal(d.layout.dp, 2);
	wlbd_decision_free(&d);

	facts.first_total = 4; /* three nodes have 6 ranks; tp x pp = 4 fits two of them */
	nodes[0].silent = true;
	d = decide(&facts);
	assert_int_equal(d.verb, WLBD_START);
	assert_int_equal(d.use_count, 2);
	assert_int_equal(d.spare_count, 1);
	assert_int_equal(d.layout.dp, 1);
	wlbd_decision_free(&d);
}

/* Who said how many replicas there are has said it of the nodes that were there. */
static void test_fixed_replicas_after_a_loss(void **state)
{
	struct wlbd_candidate_node nodes[] = {{.name = "n1"}, {.name = "n2"}, {.name = "n3"}, {.name = "n4"}};
	struct wlbd_decision_facts facts = facts_of(nodes, 4);
	struct wlb_error error;
	(void)state;
	facts.first_total = 4;
	assert_int_equal(wlb_policy_parse("tp=2,pp=2,dp=2", &facts.policy, &error), 0);
	struct wlbd_decision d = decide(&facts);
	assert_int_equal(d.use_count, 4);
	assert_int_equal(d.layout.dp, 2);
	wlbd_decision_free(&d);

	nodes[2].silent = true;
	d = decide(&facts);
	assert_int_equal(d.verb, WLBD_START);
	assert_int_equal(d.use_count, 2);
	assert_int_equal(d.layout.dp, 1);
	wlbd_decision_free(&d);
}

static void test_fixed_layout_that_does_not_fit(void **state)
{
	struct wlbd_candidate_node nodes[] = {{.name = "n1"}, {.name = "n2"}};
	struct wlbd_decision_facts facts = facts_of(nodes, 2);
	struct wlb_error error;
	(void)state;
	assert_int_equal(wlb_policy_parse("tp=1,dp=2", &facts.policy, &error), 0);
	struct wlbd_decision d = decide(&facts);
	assert_int_equal(d.verb, WLBD_STOP_FAILED); /* the user's mistake: one node would do, two were asked for */
	assert_says(&d, "4 ranks");
	wlbd_decision_free(&d);

	assert_int_equal(wlb_policy_parse("tp=2,pp=2,dp=1", &facts.policy, &error), 0);
	facts.first_total = 2;
	nodes[0].silent = true;
	d = decide(&facts);
	assert_int_equal(d.verb, WLBD_STOP_OUT_OF_NODES);
	wlbd_decision_free(&d);
}

static void test_an_avoided_node(void **state)
{
	struct wlbd_candidate_node nodes[] = {
		{.name = "n1"}, {.name = "n2"}, {.name = "n3", .avoided = "was lost in 2 runs"}, {.name = "n4"}};
	struct wlbd_decision_facts facts = facts_of(nodes, 4);
	struct wlb_error error;
	(void)state;
	struct wlbd_decision d = decide(&facts);
	assert_int_equal(d.verb, WLBD_START);
	assert_int_equal(d.use_count, 3);
	assert_int_equal(d.use[2], 3);
	assert_string_equal(d.reason, "n3 was lost in 2 runs; 3 nodes remain");
	wlbd_decision_free(&d);

	facts.min_nodes = 4;
	d = decide(&facts);
	assert_int_equal(d.use_count, 4);
	assert_string_equal(d.reason, "4 nodes");
	wlbd_decision_free(&d);

	/* Two of the others have been evicted, which is known of this run: they are excluded, and the avoided one is
	 * not. */
	facts.min_nodes = 2;
	nodes[0].evicted = nodes[1].evicted = true;
	d = decide(&facts);
	assert_int_equal(d.use_count, 2);
	assert_int_equal(d.use[0], 2);
	assert_int_equal(d.use[1], 3);
	wlbd_decision_free(&d);
	nodes[0].evicted = nodes[1].evicted = false;

	/* The layout that the user has asked for needs all four. */
	facts.min_nodes = 0;
	assert_int_equal(wlb_policy_parse("tp=2,pp=2,dp=2", &facts.policy, &error), 0);
	d = decide(&facts);
	assert_int_equal(d.verb, WLBD_START);
	assert_int_equal(d.use_count, 4);
	assert_string_equal(d.reason, "4 nodes");
	wlbd_decision_free(&d);

	/* A layout that fits no number of nodes is still the user's mistake. */
	assert_int_equal(wlb_policy_parse("tp=2,pp=2,dp=3", &facts.policy, &error), 0);
	d = decide(&facts);
	assert_int_equal(d.verb, WLBD_STOP_FAILED);
	assert_says(&d, "4 nodes");
	wlbd_decision_free(&d);
}

static const struct wlbd_candidate_node reasons[] = {{.name = "n3", .failed = "was lost twice"},
                                                     {.name = "n3", .failed = "failed again and again"},
                                                     {.name = "n3", .evicted = true},
                                                     {.name = "n3", .avoided = "was lost in 2 runs"}};
enum { REASONS = sizeof(reasons) / sizeof(reasons[0]) };

/* A node that works is used where too few others are left, or fit no layout; one that does not work never. */
static void test_a_node_that_is_needed(void **state)
{
	static const struct {
		const char *layout;
		int min_nodes;
		bool down;
		int used; /* nodes; 0: the run ends */
	} cases[] = {{"pp=4,tp=2,dp=1", 0, false, 4},
	             {"pp=4,tp=2", 0, false, 4},
	             {"auto", 4, false, 4},
	             {"auto", 0, false, 3},
	             {"pp=3,tp=2", 0, false, 3},
	             {"pp=4,tp=2", 0, true, 0},
	             {"auto", 4, true, 0}};
	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++)
		for (int reason = 0; reason < REASONS; reason++) {
			struct wlbd_candidate_node nodes[] = {
				{.name = "n1"}, {.name = "n2"}, reasons[reason], {.name = "n4"}};
			struct wlbd_decision_facts facts = facts_of(nodes, 4);
			struct wlb_error error;
			nodes[2].down = cases[c].down;
			facts.first_total = 4;
			facts.min_nodes = cases[c].min_nodes;
			assert_int_equal(wlb_policy_parse(cases[c].layout, &facts.policy, &error), 0);
			struct wlbd_decision d = decide(&facts);
			assert_int_equal(d.verb, cases[c].used > 0 ? WLBD_START : WLBD_STOP_OUT_OF_NODES);
			assert_int_equal(d.use_count, cases[c].used);
			assert_int_equal(d.spare_count, 0);
			wlbd_decision_free(&d);
		}
}

/* Of several nodes that are excluded those with the weakest reason are used, and no more than the layout needs. */
static void test_the_weakest_reason_is_given_up_first(void **state)
{
	static const struct {
		const char *layout, *use, *says;
	} cases[] = {
		{"pp=1,tp=2", "3", "n0 failed again and again, n1 was evicted, n2 was lost in 2 runs; 1 node remains"},
		{"pp=2,tp=2", "23", "n0 failed again and again, n1 was evicted; 2 nodes remain"},
		{"pp=3,tp=2", "123", "n0 failed again and again; 3 nodes remain"},
		{"pp=4,tp=2", "0123", "4 nodes"},
	};
	struct wlbd_candidate_node nodes[] = {{.name = "n0", .failed = "failed again and again"},
	                                      {.name = "n1", .evicted = true},
	                                      {.name = "n2", .avoided = "was lost in 2 runs"},
	                                      {.name = "n3"}};
	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct wlbd_decision_facts facts = facts_of(nodes, 4);
		struct wlb_error error;
		facts.first_total = 4;
		assert_int_equal(wlb_policy_parse(cases[c].layout, &facts.policy, &error), 0);
		struct wlbd_decision d = decide(&facts);
		assert_int_equal(d.use_count, strlen(cases[c].use));
		for (int i = 0; i < d.use_count; i++)
			assert_int_equal(d.use[i], cases[c].use[i] - '0');
		assert_string_equal(d.reason, cases[c].says);
		wlbd_decision_free(&d);
	}
}

/* Two of three nodes with the same reason are needed: the third stays out, and no node without one becomes a spare. */
static void test_no_more_than_are_needed(void **state)
{
	(void)state;
	for (int reason = 0; reason < REASONS; reason++) {
		struct wlbd_candidate_node nodes[] = {
			reasons[reason], {.name = "n1"}, reasons[reason], {.name = "n2"}, reasons[reason]};
		struct wlbd_decision_facts facts = facts_of(nodes, 5);
		struct wlb_error error;
		facts.first_total = 5;
		assert_int_equal(wlb_policy_parse("pp=4,tp=2", &facts.policy, &error), 0);
		struct wlbd_decision d = decide(&facts);
		assert_int_equal(d.verb, WLBD_START);
		assert_int_equal(d.use_count, 4);
		assert_int_equal(d.spare_count, 0);
		for (int i = 0; i < 4; i++)
			assert_int_equal(d.use[i], i + 1);
		assert_says(&d, "; 4 nodes remain");
		wlbd_decision_free(&d);
	}
}

/* With the avoided node two are left, one too few: an evicted one is used, too, and the other still excluded. */
static void test_a_stronger_reason_stays(void **state)
{
	struct wlbd_candidate_node nodes[] = {{.name = "n1", .avoided = "was lost in 2 runs"},
	                                      {.name = "n2", .evicted = true},
	                                      {.name = "n3", .evicted = true},
	                                      {.name = "n4"}};
	struct wlbd_decision_facts facts = facts_of(nodes, 4);
	struct wlb_error error;
	(void)state;
	facts.first_total = 4;
	assert_int_equal(wlb_policy_parse("pp=3,tp=2", &facts.policy, &error), 0);
	struct wlbd_decision d = decide(&facts);
	assert_int_equal(d.use_count, 3);
	assert_int_equal(d.use[0], 0);
	assert_int_equal(d.use[1], 2);
	assert_int_equal(d.use[2], 3);
	assert_string_equal(d.reason, "n2 was evicted; 3 nodes remain");
	wlbd_decision_free(&d);
}

static void test_when_not_to_start(void **state)
{
	struct wlbd_candidate_node nodes[] = {{.name = "n1"}};
	struct wlbd_decision_facts facts = facts_of(nodes, 1);
	(void)state;
	facts.previous_exit_code = WLBD_EXIT_BAD_INPUT;
	struct wlbd_decision d = decide(&facts);
	assert_int_equal(d.verb, WLBD_STOP_FAILED);
	assert_says(&d, "exit code 2");
	wlbd_decision_free(&d);

	/* An earlier attempt had the same input and has saved: a file system or a GPU may be what fails now. */
	facts.has_worked = true;
	d = decide(&facts);
	assert_int_equal(d.verb, WLBD_START);
	wlbd_decision_free(&d);

	facts.previous_exit_code = 1;
	facts.attempts_without_progress = WLBD_WITHOUT_PROGRESS_MAX;
	d = decide(&facts);
	assert_int_equal(d.verb, WLBD_STOP_FAILED);
	assert_says(&d, "3 attempts");
	wlbd_decision_free(&d);

	facts.program_step = 57;
	d = decide(&facts);
	assert_int_equal(d.verb, WLBD_STOP_FAILED);
	assert_says(&d, "the program fails at step 57 on more than one node");
	assert_says(&d, "correct the program or its data");
	wlbd_decision_free(&d);

	facts.program_step = 0;
	d = decide(&facts);
	assert_says(&d, "the program fails before its first step on more than one node");
	assert_says(&d, "correct the program or its arguments");
	wlbd_decision_free(&d);

	facts.attempts_without_progress = WLBD_WITHOUT_PROGRESS_MAX - 1;
	d = decide(&facts);
	assert_int_equal(d.verb, WLBD_START);
	wlbd_decision_free(&d);

	facts.judging = true;
	d = decide(&facts);
	assert_int_equal(d.verb, WLBD_WAIT);
	wlbd_decision_free(&d);
}

/* The next attempt is put off after one without progress, and four times as long after another. */
static void test_back_off(void **state)
{
	static const struct {
		int without_progress;
		double since_end_s, retry_after_s; /* 0: it starts */
	} cases[] = {{0, 0, 0},        {1, 0, 3}, {1, 2.5, 0.5}, {1, 3, 0},
	             {1, HUGE_VAL, 0}, {2, 0, 5}, {2, 10, 2},    {2, 12.5, 0}};
	struct wlbd_candidate_node nodes[] = {{.name = "n1"}};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wlbd_decision_facts facts = facts_of(nodes, 1);
		facts.back_off_s = 3;
		facts.attempts_without_progress = cases[i].without_progress;
		facts.since_end_s = cases[i].since_end_s;
		struct wlbd_decision d = decide(&facts);
		assert_int_equal(d.verb, cases[i].retry_after_s > 0 ? WLBD_WAIT : WLBD_START);
		if (d.verb == WLBD_WAIT)
			assert_float_equal(d.retry_after_s, cases[i].retry_after_s, 1e-9);
		wlbd_decision_free(&d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_attempt_uses_all),
		cmocka_unit_test(test_lost_nodes_are_excluded),
		cmocka_unit_test(test_a_node_that_was_unavailable_at_first),
		cmocka_unit_test(test_nodes_that_may_return),
		cmocka_unit_test(test_nodes_that_may_pass),
		cmocka_unit_test(test_back_off),
		cmocka_unit_test(test_nodes_of_few_switches),
		cmocka_unit_test(test_spares_step_in),
		cmocka_unit_test(test_spares_never_starve_the_run),
		cmocka_unit_test(test_out_of_nodes),
		cmocka_unit_test(test_fixed_layout),
		cmocka_unit_test(test_fixed_replicas_after_a_loss),
		cmocka_unit_test(test_fixed_layout_that_does_not_fit),
		cmocka_unit_test(test_an_avoided_node),
		cmocka_unit_test(test_a_node_that_is_needed),
		cmocka_unit_test(test_the_weakest_reason_is_given_up_first),
		cmocka_unit_test(test_no_more_than_are_needed),
		cmocka_unit_test(test_a_stronger_reason_stays),
		cmocka_unit_test(test_when_not_to_start),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
