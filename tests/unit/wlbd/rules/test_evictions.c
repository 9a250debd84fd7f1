/* Which nodes the next attempt excludes. */
#include "coordinator/wlbd/rules/evictions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { NODES = 8 };
static const char *const names[NODES] = {"n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"};

/* Returns the evicted nodes as bits, n1 the lowest. */
static unsigned marked_of_usable(const bool *is_excluded, const struct wlbd_past_eviction *evictions, int count,
                                 int node_count)
{
	bool evicted[NODES];
	unsigned bits = 0;
	assert_int_equal(wlbd_evictions_mark(evictions, count, names, node_count, is_excluded, evicted), 0);
	for (int i = 0; i < node_count; i++)
		bits |= evicted[i] ? 1U << i : 0;
	return bits;
}

static unsigned marked(const struct wlbd_past_eviction *evictions, int count, int node_count)
{
	return marked_of_usable(NULL, evictions, count, node_count);
}

static void test_an_evicted_node_is_excluded(void **state)
{
	const struct wlbd_past_eviction one[] = {{"n2", true, 12, 5}};
	const struct wlbd_past_eviction other[] = {{"n9", true, 12, 5}};
	(void)state;
	assert_int_equal(marked(one, 1, 4), 1 << 1);
	assert_int_equal(marked(other, 1, 4), 0);
	assert_int_equal(marked(NULL, 0, 4), 0);
}

static void test_for_a_day(void **state)
{
	const struct wlbd_past_eviction old[] = {{"n2", true, 12, WLBD_EVICTION_LASTS_S + 1.0}};
	const struct wlbd_past_eviction young[] = {{"n2", true, 12, WLBD_EVICTION_LASTS_S - 1.0}};
	(void)state;
	assert_int_equal(marked(old, 1, 4), 0);
	assert_int_equal(marked(young, 1, 4), 1 << 1);
}

static void test_half_of_the_nodes_at_most(void **state)
{
	const struct wlbd_past_eviction all[] = {
		{"n4", false, 50, 1}, {"n4", false, 40, 2}, {"n1", false, 30, 3}, {"n3", false, 20, 4}};
	(void)state;
	assert_int_equal(marked(all, 4, 4), 1 << 3 | 1 << 0);
	assert_int_equal(marked(all, 4, 3), 1 << 0);
	assert_int_equal(marked(all, 4, 1), 0);
	assert_int_equal(marked(all, 4, 8), 1 << 3 | 1 << 0);
}

/* Nodes that are excluded for another reason are among the half. */
static void test_beside_nodes_that_are_out(void **state)
{
	const struct wlbd_past_eviction all[] = {{"n4", false, 50, 1}, {"n1", false, 30, 3}, {"n3", false, 20, 4}};
	(void)state;
	assert_int_equal(marked_of_usable((bool[]){false, true, false, false}, all, 3, 4), 1 << 3);
	assert_int_equal(marked_of_usable((bool[]){true, false, false, false}, all, 3, 4), 1 << 3 | 1 << 0);
	assert_int_equal(marked_of_usable((bool[]){true, true, false, false}, all, 3, 4), 1 << 0);
	assert_int_equal(marked_of_usable((bool[]){true, true, true, false}, all, 3, 4), 1 << 0 | 1 << 2);
}

static void test_a_program_that_hangs(void **state)
{
	const struct wlbd_past_eviction same_step[] = {{"n2", true, 12, 5}, {"n1", true, 12, 60}};
	const struct wlbd_past_eviction other_steps[] = {{"n2", true, 12, 5}, {"n1", true, 11, 60}};
	const struct wlbd_past_eviction unknown_steps[] = {{"n2", true, -1, 5}, {"n1", true, -1, 60}};
	const struct wlbd_past_eviction slow[] = {{"n2", false, 12, 5}, {"n1", true, 12, 60}};
	(void)state;
	assert_int_equal(marked(same_step, 2, 4), 0);
	assert_int_equal(marked(other_steps, 2, 4), 1 << 1 | 1 << 0);
	assert_int_equal(marked(unknown_steps, 2, 4), 1 << 1 | 1 << 0);
	assert_int_equal(marked(slow, 2, 4), 1 << 1 | 1 << 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_evicted_node_is_excluded), cmocka_unit_test(test_for_a_day),
		cmocka_unit_test(test_half_of_the_nodes_at_most),   cmocka_unit_test(test_beside_nodes_that_are_out),
		cmocka_unit_test(test_a_program_that_hangs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
