#include "coordinator/wlb/run/rules/grow_rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct wlb_policy automatic = {.kind = WLB_POLICY_AUTO};

/* A run of four nodes of two ranks that has lost one of them, which does not answer. */
static struct wlb_grow_facts three_of_four(void)
{
	return (struct wlb_grow_facts){.policy = &automatic,
	                               .ranks_per_node = 2,
	                               .first_nodes = 4,
	                               .used = 3,
	                               .allocated = 4,
	                               .usable = 3,
	                               .may_requeue = true};
}

static void expect(const struct wlb_grow_facts *facts, enum wlb_grow_way way, int nodes)
{
	int found = -1;
	assert_int_equal(wlb_grow_decide(facts, &found), way);
	if (way != WLB_GROW_NOT)
		assert_int_equal(found, nodes);
}

static void a_node_that_returned_is_taken_in(void **state)
{
	(void)state;
	struct wlb_grow_facts facts = three_of_four();
	expect(&facts, WLB_GROW_NOT, 0);
	facts.usable = 4;
	facts.returned = 1;
	expect(&facts, WLB_GROW_IN_JOB, 4);
	facts.used = 2;
	expect(&facts, WLB_GROW_IN_JOB, 3);
	facts.returned = 2;
	expect(&facts, WLB_GROW_IN_JOB, 4);
}

static void a_job_that_lost_nodes_is_queued_again_for_all_of_them(void **state)
{
	(void)state;
	struct wlb_grow_facts facts = three_of_four();
	facts.allocated = 3;
	expect(&facts, WLB_GROW_NOT, 0);
	facts.idle = 1;
	expect(&facts, WLB_GROW_REQUEUE, 4);
	facts.may_requeue = false;
	expect(&facts, WLB_GROW_NOT, 0);

	/* Two are missing, and one is there: the job would wait for the other. */
	facts = three_of_four();
	facts.used = facts.allocated = facts.usable = 2;
	facts.idle = 1;
	expect(&facts, WLB_GROW_NOT, 0);
	facts.idle = 2;
	expect(&facts, WLB_GROW_REQUEUE, 4);
	/* A node of the job that is drained meanwhile would not be given to it again. */
	facts.usable = 1;
	expect(&facts, WLB_GROW_NOT, 0);
}

static void a_run_with_all_its_nodes_does_not_grow(void **state)
{
	(void)state;
	struct wlb_grow_facts facts = three_of_four();
	facts.used = facts.usable = 4;
	facts.idle = 10;
	expect(&facts, WLB_GROW_NOT, 0);
}

/* Six nodes, of which each four ranks are one replica of the model: on two nodes. */
static void nodes_that_no_layout_uses_are_no_reason(void **state)
{
	(void)state;
	const struct wlb_policy fixed = {.kind = WLB_POLICY_FIXED, .fixed = {.tp = 2, .cp = 1, .pp = 2, .dp = 3}};
	struct wlb_grow_facts facts = {.policy = &fixed,
	                               .ranks_per_node = 2,
	                               .first_nodes = 6,
	                               .used = 4,
	                               .unused = 0,
	                               .returned = 1,
	                               .allocated = 6,
	                               .usable = 5,
	                               .may_requeue = true};
	expect(&facts, WLB_GROW_NOT, 0);
	facts.unused = 1;
	expect(&facts, WLB_GROW_IN_JOB, 6);
	facts.unused = 0;
	facts.returned = 0;
	facts.allocated = 5;
	facts.idle = 1;
	expect(&facts, WLB_GROW_REQUEUE, 6);
}

/* A node that returns becomes a spare. */
static void spares_are_no_reason(void **state)
{
	(void)state;
	struct wlb_grow_facts facts = three_of_four();
	facts.spares = 1;
	facts.usable = 4;
	facts.returned = 1;
	expect(&facts, WLB_GROW_NOT, 0);
	facts.used = 2;
	expect(&facts, WLB_GROW_IN_JOB, 3);
	/* The coordinator uses the least number of nodes, whatever the spares. */
	facts.spares = 3;
	facts.min_nodes = 4;
	expect(&facts, WLB_GROW_IN_JOB, 3);
	facts.returned = 2;
	expect(&facts, WLB_GROW_IN_JOB, 4);
}

static void growths_that_bring_nothing_become_rarer(void **state)
{
	(void)state;
	assert_int_equal(wlb_grow_wait_s(600, 0), 600);
	assert_int_equal(wlb_grow_wait_s(600, 1), 1200);
	assert_int_equal(wlb_grow_wait_s(600, 3), 4800);
	assert_int_equal(wlb_grow_wait_s(600, 8), 86400);
	assert_int_equal(wlb_grow_wait_s(600, 2000000000), 86400);
	assert_int_equal(wlb_grow_wait_s(604800, 5), 604800);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_that_returned_is_taken_in),
		cmocka_unit_test(a_job_that_lost_nodes_is_queued_again_for_all_of_them),
		cmocka_unit_test(a_run_with_all_its_nodes_does_not_grow),
		cmocka_unit_test(nodes_that_no_layout_uses_are_no_reason),
		cmocka_unit_test(spares_are_no_reason),
		cmocka_unit_test(growths_that_bring_nothing_become_rarer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
