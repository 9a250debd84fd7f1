/* Which nodes attempts avoid for what is known from other runs. */
#include "coordinator/wlbd/rules/avoidance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { NODES_MAX = 12 };

/* Returns the nodes that are avoided as bits, the first the lowest; nothing is known against those of weight 0. Those
 * of `excluded` are excluded for another reason. */
static unsigned avoided_of_usable(unsigned excluded, int count, const double weights[])
{
	struct wlbd_known_node nodes[NODES_MAX] = {{0}};
	unsigned bits = 0;
	for (int i = 0; i < count; i++)
		nodes[i] = (struct wlbd_known_node){weights[i] > 0.0 ? "failed a check" : NULL, weights[i],
		                                    (excluded >> i & 1) != 0};
	assert_int_equal(wlbd_avoidance_mark(nodes, count), 0);
	for (int i = 0; i < count; i++)
		bits |= nodes[i].why != NULL ? 1U << i : 0;
	return bits;
}

static unsigned avoided(int count, const double weights[])
{
	return avoided_of_usable(0, count, weights);
}

static void those_with_the_most_weight(void **state)
{
	(void)state;
	assert_int_equal(avoided(4, (double[]){0, 0, 2, 0}), 1 << 2);
	assert_int_equal(avoided(4, (double[]){1.6, 3, 2, 0}), 1 << 1 | 1 << 2);
	assert_int_equal(avoided(4, (double[]){2, 2, 2, 2}), 1 << 2 | 1 << 3);
	assert_int_equal(avoided(4, (double[]){0, 0, 0, 0}), 0);
}

static void half_at_most_and_of_many_a_quarter(void **state)
{
	(void)state;
	assert_int_equal(avoided(1, (double[]){9}), 0);
	assert_int_equal(avoided(2, (double[]){9, 8}), 1);
	assert_int_equal(avoided(3, (double[]){9, 8, 0}), 1);
	assert_int_equal(avoided(8, (double[]){1, 2, 3, 4, 5, 6, 7, 8}), 1 << 6 | 1 << 7);
	assert_int_equal(avoided(12, (double[]){9, 9, 9, 9, 0, 0, 0, 0, 0, 0, 0, 2}), 1 << 1 | 1 << 2 | 1 << 3);
}

/* These are among the half, and what is known of them is kept. */
static void beside_nodes_that_are_out(void **state)
{
	(void)state;
	assert_int_equal(avoided_of_usable(1, 4, (double[]){0, 3, 2, 0}), 1 << 1);
	assert_int_equal(avoided_of_usable(3, 4, (double[]){0, 0, 2, 0}), 0);
	assert_int_equal(avoided_of_usable(3, 4, (double[]){1.6, 0, 2, 3}), 1);
	assert_int_equal(avoided_of_usable(7, 4, (double[]){0, 0, 2, 3}), 1 << 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(those_with_the_most_weight),
		cmocka_unit_test(half_at_most_and_of_many_a_quarter),
		cmocka_unit_test(beside_nodes_that_are_out),
	};
	return cmocka_run_group_tests_name("avoidance", tests, NULL, NULL);
}
