/* The node on which a node's copies are kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "worker/train/near_neighbour.h"

enum { NODES_MAX = 12 };

/* Each node keeps the copies of one node: of another one, where there are two or more. */
static void check_permutation(int count, const int *neighbours)
{
	int kept[NODES_MAX] = {0};
	for (int i = 0; i < count; i++) {
		assert_in_range(neighbours[i], 0, count - 1);
		assert_true(count == 1 || neighbours[i] != i);
		kept[neighbours[i]]++;
	}
	for (int i = 0; i < count; i++)
		assert_int_equal(kept[i], 1);
}

static int nodes_under(int count, const uint64_t *switch_of, uint64_t under)
{
	int nodes = 0;
	for (int i = 0; i < count; i++)
		nodes += switch_of[i] == under;
	return nodes;
}

/* Of nodes under one switch, at most as many have a neighbour under it as the other switches have no room for. */
static void check_switches(int count, const uint64_t *switch_of, const int *neighbours)
{
	for (int s = 0; s < count; s++) {
		int nodes = nodes_under(count, switch_of, switch_of[s]), inside = 0;
		for (int i = 0; i < count; i++)
			inside += switch_of[i] == switch_of[s] && switch_of[neighbours[i]] == switch_of[s];
		assert_in_range(inside, 0, 2 * nodes > count ? 2 * nodes - count : 0);
	}
}

/* All ways in which up to 7 nodes are under up to 4 switches, and some of 12 nodes. */
static void copies_are_under_another_switch(void **state)
{
	(void)state;
	for (int count = 1; count <= 7; count++)
		for (int way = 0; way < 1 << (2 * count); way++) {
			uint64_t switch_of[NODES_MAX];
			int neighbours[NODES_MAX];
			for (int i = 0; i < count; i++)
				switch_of[i] = (uint64_t)(way >> (2 * i) & 3) * 77;
			assert_int_equal(wlb_near_neighbours(count, switch_of, neighbours, NULL), 0);
			check_permutation(count, neighbours);
			check_switches(count, switch_of, neighbours);
		}
}

static void two_switches_of_six_nodes_keep_each_others(void **state)
{
	(void)state;
	const uint64_t switch_of[NODES_MAX] = {1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2};
	int neighbours[NODES_MAX];
	assert_int_equal(wlb_near_neighbours(NODES_MAX, switch_of, neighbours, NULL), 0);
	check_permutation(NODES_MAX, neighbours);
	for (int i = 0; i < NODES_MAX; i++)
		assert_int_not_equal(switch_of[i], switch_of[neighbours[i]]);
}

static void a_switch_has_a_number(void **state)
{
	(void)state;
	uint64_t leaf = wlb_near_switch("spine.leaf1.n1", "switch.switch.node");
	assert_true(leaf != 0 && leaf < UINT64_C(1) << 53);
	assert_true(leaf == wlb_near_switch("spine.leaf1.n2", "switch.switch.node"));
	assert_true(leaf != wlb_near_switch("spine.leaf2.n1", "switch.switch.node"));
	assert_true(wlb_near_switch("block1.n1", "block.node") != wlb_near_switch("block2.n1", "block.node"));
	/* Without a topology. A name of a node may have a dot. */
	assert_int_equal(wlb_near_switch("n1", "node"), 0);
	assert_int_equal(wlb_near_switch("n1.cluster", "node"), 0);
	assert_int_equal(wlb_near_switch(NULL, "switch.node"), 0);
	assert_int_equal(wlb_near_switch("leaf.n1", NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_are_under_another_switch),
		cmocka_unit_test(two_switches_of_six_nodes_keep_each_others),
		cmocka_unit_test(a_switch_has_a_number),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
