/* What four ranks agree on where one of them, or two, measured something else: one value is planted, and all else must
 * be as if it had not been. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "worker/calibrate/calibration.h"

enum { RANKS = 4, DISTURBED = 2 };

static const double DEVIATION = 1.5;

static struct wlb_launch *launch;
static struct wlb_comm *world;

/* What this rank has measured: the ranks differ by 2 %. */
static struct wlb_calibration measured(void)
{
	double factor = 1.0 + 0.02 * launch->rank;
	struct wlb_calibration c = {.gemm = {.rows_count = 2, .depth_count = 1, .columns_count = 1},
	                            .attention = {.q_count = 1, .k_count = 2},
	                            .elementwise = {.memory_bytes_per_s = 2e10 * factor, .operation_s = 1e-6},
	                            .node_calls = {.count = 2, .bytes = {4096, 65536}}};
	for (int i = 0; i < 2; i++) {
		c.gemm.flops_per_s[i] = 1e11 * factor;
		c.attention.forward_flops_per_s[i] = 5e10 * factor;
		c.attention.backward_flops_per_s[i] = 4e10 * factor;
		c.node_calls.gather_s[i] = c.node_calls.reduce_s[i] = c.node_calls.send_s[i] = 1e-5 * (i + 1) * factor;
	}
	for (int op = 0; op < WLB_OPERATIONS; op++)
		c.elementwise.operations[op] = (struct wlb_op_time){1e-7, 1e-9 * factor};
	for (int kind = 0; kind < WLB_LINK_KINDS; kind++)
		c.links[kind] = (struct wlb_link){.bytes_per_s = 1e10 * factor, .latency_s = 1e-5};
	return c;
}

/* Values of a calibration, by their place in it. */
#define VALUE(member) offsetof(struct wlb_calibration, member)

static const size_t values[] = {
	VALUE(gemm.flops_per_s[0]),
	VALUE(attention.forward_flops_per_s[0]),
	VALUE(attention.backward_flops_per_s[0]),
	VALUE(elementwise.memory_bytes_per_s),
	VALUE(elementwise.operations[WLB_OP_ADAMW].element_s),
	VALUE(elementwise.operations[WLB_OP_ROPE].element_s),
	VALUE(links[WLB_LINK_NODE].bytes_per_s),
	VALUE(links[WLB_LINK_NETWORK].bytes_per_s),
	VALUE(node_calls.gather_s[0]),
	VALUE(node_calls.reduce_s[0]),
	VALUE(node_calls.send_s[0]),
};

enum { VALUES = sizeof(values) / sizeof(values[0]) };

static double *at(struct wlb_calibration *c, int value)
{
	return (double *)((char *)c + values[value]);
}

/* Returns what a rank without the difference of 2 % measures. */
static double unit_of(int value)
{
	struct wlb_calibration own = measured();
	return *at(&own, value) / (1.0 + 0.02 * launch->rank);
}

static void multiply(struct wlb_calibration *c, int value, double factor)
{
	*at(c, value) *= factor;
	/* Products, attention and calls have two points each, which are judged together. */
	if (value < 3 || value >= VALUES - 3)
		at(c, value)[1] *= factor;
}

static int agree(struct wlb_calibration *c, struct wlb_error *error)
{
	*error = (struct wlb_error){0};
	return wlb_calibration_agree(launch, world, DEVIATION, c, error);
}

static void all_agree(void **state)
{
	struct wlb_calibration c = measured();
	struct wlb_error error;
	(void)state;
	assert_int_equal(agree(&c, &error), 0);
	for (int v = 0; v < VALUES; v++)
		assert_true(fabs(*at(&c, v) / unit_of(v) / 1.03 - 1.0) < 1e-9);
}

/* The disturbed rank is left out of that value, and of no other: the median is of the three others, or of all four. */
static void one_disturbed_value_is_outvoted(void **state)
{
	static const double factors[] = {30.0, 1.0 / 30.0};
	(void)state;
	for (int planted = 0; planted < 2 * VALUES; planted++) {
		struct wlb_calibration c = measured();
		struct wlb_error error;
		if (launch->rank == DISTURBED)
			multiply(&c, planted / 2, factors[planted % 2]);
		if (agree(&c, &error) != 0)
			fail_msg("value %d: %s", planted / 2, error.message);
		for (int v = 0; v < VALUES; v++) {
			double median =
				v == planted / 2 ? 1.02 : 1.03; /* of 1, 1.02 and 1.06; with 1.04 of the disturbed */
			if (fabs(*at(&c, v) / unit_of(v) / median - 1.0) > 1e-9)
				fail_msg("value %d, of %d disturbed: %g", v, planted / 2, *at(&c, v) / unit_of(v));
		}
	}
}

/* What was not measured, or is no number, has no vote. */
static void absurd_values_have_no_vote(void **state)
{
	static const double absurd[] = {0.0, -1.0, NAN};
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct wlb_calibration c = measured();
		struct wlb_error error;
		if (launch->rank == DISTURBED)
			c.elementwise.operations[WLB_OP_ROPE].element_s = absurd[i];
		assert_int_equal(agree(&c, &error), 0);
		assert_true(fabs(c.elementwise.operations[WLB_OP_ROPE].element_s / 1.02e-9 - 1.0) < 1e-9);
		assert_true(fabs(c.elementwise.operations[WLB_OP_ADAMW].element_s / 1.03e-9 - 1.0) < 1e-9);
	}
}

static void without_a_majority_a_group_of_values_is_refused_by_name(void **state)
{
	struct wlb_calibration c = measured();
	struct wlb_error error;
	(void)state;
	if (launch->rank >= DISTURBED)
		c.gemm.flops_per_s[0] = c.gemm.flops_per_s[1] = 1e9;
	assert_int_equal(agree(&c, &error), 1);
	assert_non_null(strstr(error.message, "matrix products: "));
	assert_non_null(strstr(error.message, "of 4 ranks are more than 1.5 times"));
}

/* Other work makes a short operation longer. */
static void without_a_majority_an_operation_takes_the_least_time(void **state)
{
	struct wlb_calibration c = measured();
	struct wlb_error error;
	(void)state;
	if (launch->rank >= DISTURBED) {
		c.elementwise.operations[WLB_OP_ROPE].element_s *= 30.0;
		c.node_calls.send_s[0] = c.node_calls.send_s[1] = 1.0;
	}
	assert_int_equal(agree(&c, &error), 0);
	assert_true(fabs(c.elementwise.operations[WLB_OP_ROPE].element_s / 1e-9 - 1.0) < 1e-9);
	assert_true(fabs(c.elementwise.operations[WLB_OP_ADAMW].element_s / 1.03e-9 - 1.0) < 1e-9);
	assert_true(fabs(c.node_calls.send_s[0] / 1e-5 - 1.0) < 1e-9);
}

int main(void)
{
	struct wlb_error error = {0};
	int code = 0;
	launch = wlb_launch_open(&code, &error);
	struct wlb_device *device = launch != NULL ? wlb_device_open_cpu(WLB_FLOAT64, 1, &error) : NULL;
	world = device != NULL ? wlb_comm_open_world(device, launch->rank, launch->size, &error) : NULL;
	if (world == NULL || launch->size != RANKS) {
		fprintf(stderr, "four ranks are needed: %s\n", error.message);
		return 1;
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_agree),
		cmocka_unit_test(one_disturbed_value_is_outvoted),
		cmocka_unit_test(absurd_values_have_no_vote),
		cmocka_unit_test(without_a_majority_a_group_of_values_is_refused_by_name),
		cmocka_unit_test(without_a_majority_an_operation_takes_the_least_time),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	wlb_launch_disconnect(launch);
	wlb_comm_close(world);
	wlb_device_close(device);
	wlb_launch_close(launch);
	return failed;
}
