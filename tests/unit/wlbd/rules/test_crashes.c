#include "coordinator/wlbd/rules/crashes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { NODES = 4, HOUR_S = 3600 };

static struct wlbd_suspect nodes[NODES];

static int suspect(const struct wlbd_crash *crashes, int count)
{
	static const char *const names[NODES] = {"n1", "n2", "n3", "n4"};
	int suspected = 0;
	for (int i = 0; i < NODES; i++)
		nodes[i] = (struct wlbd_suspect){.node = names[i], .losses = nodes[i].losses};
	assert_int_equal(wlbd_crashes_suspect(crashes, count, nodes, NODES), 0);
	for (int i = 0; i < NODES; i++)
		suspected += nodes[i].suspected;
	return suspected;
}

static void test_sick_node_is_left_out_and_comes_back(void **state)
{
	struct wlbd_crash crashes[] = {{.node = "n3", .step = 40, .age_s = 0},
	                               {.node = "n3", .step = 10, .age_s = HOUR_S}};
	(void)state;
	assert_int_equal(suspect(&crashes[1], 1), 0);
	assert_int_equal(suspect(crashes, 2), 1);
	assert_true(nodes[2].suspected);
	for (int i = 0; i < 2; i++)
		crashes[i].age_s += WLBD_CRASH_HALF_LIFE_S;
	assert_int_equal(suspect(crashes, 2), 0);
	/* It fails again: out at once. */
	struct wlbd_crash again[] = {{.node = "n3", .step = 90, .age_s = 0}, crashes[0], crashes[1]};
	assert_int_equal(suspect(again, 3), 1);
}

static void test_random_crasher_keeps_its_nodes(void **state)
{
	static const char *const names[NODES] = {"n1", "n2", "n3", "n4"};
	(void)state;
	for (unsigned seed = 1; seed <= 20; seed++) {
		struct wlbd_crash crashes[50];
		int times_out[NODES] = {0};
		srand(seed);
		for (int count = 0; count < 50; count++) {
			/* The newest first; one every minute, on one of the nodes that the attempt had. */
			int at = rand() % NODES;
			while (count > 0 && nodes[at].suspected)
				at = rand() % NODES;
			for (int i = count; i > 0; i--) {
				crashes[i] = crashes[i - 1];
				crashes[i].age_s += 60;
			}
			crashes[0] = (struct wlbd_crash){.node = names[at], .step = count};
			assert_in_range(suspect(crashes, count + 1), 0, 1);
			for (int i = 0; i < NODES; i++)
				times_out[i] += nodes[i].suspected;
		}
		for (int i = 0; i < NODES; i++)
			assert_true(times_out[i] < 40);
	}
}

static void test_crash_at_one_step_is_the_programs(void **state)
{
	struct wlbd_crash crashes[] = {{.node = "n3", .step = 57, .in_row = true},
	                               {.node = "n1", .step = 57, .in_row = true},
	                               {.node = "n3", .step = 57, .in_row = true}};
	(void)state;
	assert_int_equal(suspect(crashes, 3), 0);
	assert_int_equal(nodes[2].weight, 0);
	assert_int_equal(wlbd_crashes_program_step(crashes, 3), 57);
	crashes[1].step = 58;
	assert_int_equal(suspect(crashes, 3), 1); /* two of three */
	assert_true(nodes[2].suspected);
	assert_int_equal(wlbd_crashes_program_step(crashes, 3), -1);
	for (int i = 0; i < 3; i++)
		crashes[i].step = -1; /* unknown steps are not the same */
	assert_int_equal(wlbd_crashes_program_step(crashes, 3), -1);
}

/* Ranks died before the first step of an attempt: once on n2, and on n3 since the run has made progress. */
static void test_crashes_with_progress_between_are_chance(void **state)
{
	struct wlbd_crash crashes[] = {{.node = "n3", .step = 0, .in_row = true},
	                               {.node = "n3", .step = 0, .in_row = true},
	                               {.node = "n2", .step = 0, .later_progress = 1, .age_s = 90 * HOUR_S}};
	(void)state;
	assert_int_equal(wlbd_crashes_program_step(crashes, 3), -1);
	assert_int_equal(suspect(crashes, 3), 1);
	assert_true(nodes[2].suspected);
	/* The crash that ended the progress is of no attempt of the row, and excuses n3. */
	crashes[2].later_progress = 0;
	assert_int_equal(wlbd_crashes_program_step(crashes, 3), -1);
	assert_int_equal(suspect(crashes, 3), 0);
	crashes[2].in_row = true;
	assert_int_equal(wlbd_crashes_program_step(crashes, 3), 0);
}

static void test_lost_nodes_weigh_in_full(void **state)
{
	struct wlbd_crash crash = {.node = "n2", .step = 3, .age_s = HOUR_S};
	(void)state;
	nodes[1].losses = 1;
	assert_int_equal(suspect(&crash, 1), 1);
	assert_true(nodes[1].suspected);
	nodes[1].losses = 0;
}

static void test_only_node_is_kept(void **state)
{
	struct wlbd_crash crashes[] = {{.node = "n1", .step = 1}, {.node = "n1", .step = 2}, {.node = "n1", .step = 3}};
	struct wlbd_suspect one = {.node = "n1"};
	(void)state;
	assert_int_equal(wlbd_crashes_suspect(crashes, 3, &one, 1), 0);
	assert_false(one.suspected);
	assert_int_equal(wlbd_crashes_suspect(crashes, 3, NULL, 0), 0);
}

static void test_two_sick_nodes_of_many(void **state)
{
	static char names[16][8];
	struct wlbd_suspect many[16];
	struct wlbd_crash crashes[] = {{.node = "m3", .step = 4},
	                               {.node = "m9", .step = 3},
	                               {.node = "m3", .step = 2},
	                               {.node = "m9", .step = 1}};
	(void)state;
	for (int i = 0; i < 16; i++) {
		names[i][0] = 'm';
		names[i][1] = (char)('0' + i % 10);
		names[i][2] = i < 10 ? '\0' : 'x';
		many[i] = (struct wlbd_suspect){.node = names[i]};
	}
	assert_int_equal(wlbd_crashes_suspect(crashes, 4, many, 16), 0);
	for (int i = 0; i < 16; i++)
		assert_int_equal(many[i].suspected, i == 3 || i == 9);
}

/* As many nodes as a request can name. */
static void test_a_quarter_of_very_many(void **state)
{
	enum { MANY = 65536, LOSSES = 2 };
	static char names[MANY][16];
	static struct wlbd_suspect many[MANY];
	(void)state;
	for (int i = 0; i < MANY; i++) {
		snprintf(names[i], sizeof(names[i]), "m%d", i);
		many[i] = (struct wlbd_suspect){.node = names[i], .losses = i % 2 && i < MANY / 2 ? LOSSES : 0};
	}
	const struct wlbd_crash crashes[] = {{.node = "m7", .step = 1}, {.node = "m40001", .step = 2}};
	assert_int_equal(wlbd_crashes_suspect(crashes, 2, many, MANY), 0);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(many[i].suspected, i % 2 && i < MANY / 2);
	assert_true(many[7].weight == LOSSES + 1 && many[40001].weight == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sick_node_is_left_out_and_comes_back),
		cmocka_unit_test(test_random_crasher_keeps_its_nodes),
		cmocka_unit_test(test_crash_at_one_step_is_the_programs),
		cmocka_unit_test(test_crashes_with_progress_between_are_chance),
		cmocka_unit_test(test_lost_nodes_weigh_in_full),
		cmocka_unit_test(test_only_node_is_kept),
		cmocka_unit_test(test_two_sick_nodes_of_many),
		cmocka_unit_test(test_a_quarter_of_very_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
