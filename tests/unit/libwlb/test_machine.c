/* Seconds of operations on a machine: from measured grids, and from the shape where nothing was measured. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/libwlb/sim_cases.h"

static void assert_near(double got, double expected, double tolerance)
{
	if (!(fabs(got - expected) <= tolerance * fabs(expected)))
		fail_msg("%.12g is not %.12g", got, expected);
}

static struct wlb_machine measured(void)
{
	struct wlb_machine machine = h100();
	machine.gemm = (struct wlb_gemm_rates){.rows_count = 2,
	                                       .depth_count = 2,
	                                       .columns_count = 2,
	                                       .rows = {100, 10000},
	                                       .depth = {64, 1024},
	                                       .columns = {16, 256},
	                                       .flops_per_s = {1e9, 2e9, 3e9, 4e9, 5e9, 6e9, 7e9, 8e9}};
	return machine;
}

static double rate(const struct wlb_machine *machine, double rows, double depth, double columns)
{
	return 2.0 * rows * depth * columns / wlb_machine_gemm_s(machine, rows, depth, columns);
}

static void grids_are_linear_in_the_logarithms_of_lengths(void **state)
{
	(void)state;
	struct wlb_machine machine = measured();
	assert_int_equal(wlb_machine_check(&machine, NULL), 0);
	assert_near(rate(&machine, 100, 64, 16), 1e9, 1e-12);
	assert_near(rate(&machine, 100, 64, 256), 2e9, 1e-12);
	assert_near(rate(&machine, 100, 1024, 16), 3e9, 1e-12);
	assert_near(rate(&machine, 10000, 64, 16), 5e9, 1e-12);
	assert_near(rate(&machine, 1000, 64, 16), 3e9, 1e-12);
	assert_near(rate(&machine, 100, 256, 16), 2e9, 1e-12);
	assert_near(rate(&machine, 1000, 256, 64), 4.5e9, 1e-12);
	assert_near(rate(&machine, 1, 1, 1), 1e9, 1e-12);
	assert_near(rate(&machine, 1e6, 1e6, 1e6), 8e9, 1e-12);
	assert_near(wlb_machine_gemm_most(&machine), 8e9, 1e-12);
	machine.operation_s = 1.0;
	assert_near(wlb_machine_gemm_s(&machine, 100, 64, 16), 1.0, 1e-12);
	assert_near(wlb_machine_stream_s(&machine, 3.0 * machine.memory_bytes_per_s), 4.0, 1e-12);
}

static void attention_is_read_where_keys_are_no_fewer_than_queries(void **state)
{
	(void)state;
	struct wlb_machine machine = h100();
	machine.attention = (struct wlb_attention_rates){.q_count = 2,
	                                                 .k_count = 2,
	                                                 .q_tokens = {16, 64},
	                                                 .k_tokens = {16, 64},
	                                                 .forward_flops_per_s = {1e9, 3e9, 0.0, 5e9},
	                                                 .backward_flops_per_s = {2e9, 4e9, 0.0, 8e9}};
	assert_int_equal(wlb_machine_check(&machine, NULL), 0);
	/* 3 heads of 32: 4 x 96 FLOPs for each of 16 x 17 / 2 pairs, and 16 x 64 - 16 x 15 / 2. */
	assert_near(wlb_machine_attention_s(&machine, 3, 32, 0, 16, 16, 0), 384.0 * 136 / 1e9, 1e-12);
	assert_near(wlb_machine_attention_s(&machine, 3, 32, 0, 16, 64, 1), 2.5 * 384.0 * 904 / 4e9, 1e-12);
	assert_near(wlb_machine_attention_s(&machine, 3, 32, 0, 16, 32, 0), 384.0 * 392 / 2e9, 1e-12);
	assert_near(wlb_machine_attention_s(&machine, 3, 32, 0, 64, 64, 0), 384.0 * 2080 / 5e9, 1e-12);
	assert_near(wlb_machine_attention_s(&machine, 3, 32, 0, 32, 32, 0), 384.0 * 528 / 3.5e9, 1e-12);
	/* In a window of 32: 32 queries before it is full, and 32 with 32 keys each. */
	assert_near(wlb_machine_attention_s(&machine, 3, 32, 32, 64, 64, 0), 384.0 * (528 + 32 * 32) / 3.5e9, 1e-12);
	assert_near(wlb_machine_attention_s(&machine, 3, 32, 64, 64, 64, 0), 384.0 * 2080 / 5e9, 1e-12);
}

static void without_a_grid_attention_works_in_tiles(void **state)
{
	(void)state;
	struct wlb_machine machine = h100();
	double full_s = wlb_machine_attention_s(&machine, 1, 128, 0, 128, 1000, 0);
	assert_near(full_s, 128.0 * (1000 - 63.5 + 200) * 512 / (989.4e12 * 0.647), 1e-12);
	/* A query alone takes a whole tile, and two tiles take twice one. */
	assert_near(wlb_machine_attention_s(&machine, 1, 128, 0, 1, 1000 - 63.5, 0), full_s, 1e-12);
	assert_near(wlb_machine_attention_s(&machine, 1, 128, 0, 256, 1000 + 64, 0), 2 * full_s, 1e-12);
	assert_near(wlb_machine_attention_s(&machine, 1, 128, 0, 128, 1000, 1), full_s * 2.5 * 0.647 / 0.571, 1e-12);
}

static void fields_of_a_measurement_are_checked(void **state)
{
	(void)state;
	struct wlb_error error;
	struct wlb_machine bad = measured();
	bad.gemm.columns_count = 0;
	assert_int_equal(wlb_machine_check(&bad, &error), -1);
	assert_non_null(strstr(error.message, "gemm: columns has 0 points"));
	bad = measured();
	bad.gemm.flops_per_s[7] = NAN;
	assert_int_equal(wlb_machine_check(&bad, &error), -1);
	assert_non_null(strstr(error.message, "value 7 is nan"));
	bad = h100();
	bad.element_bytes = 9;
	assert_int_equal(wlb_machine_check(&bad, &error), -1);
	assert_non_null(strstr(error.message, "element_bytes is 9"));
}

static void links_between_switches_are_measured_or_derived(void **state)
{
	(void)state;
	struct wlb_machine machine = h100();
	machine.switch_taper = 0.5;
	machine.switch_latency_s = 1e-6;
	assert_near(wlb_machine_network(&machine, 0).bytes_per_s, 50e9, 1e-12);
	assert_near(wlb_machine_network(&machine, 1).bytes_per_s, 25e9, 1e-12);
	assert_near(wlb_machine_network(&machine, 1).latency_s, 15e-6, 1e-12);
	machine.switch_link = (struct wlb_link){10e9, 50e-6};
	assert_near(wlb_machine_network(&machine, 1).bytes_per_s, 10e9, 1e-12);
	assert_near(wlb_machine_network(&machine, 1).latency_s, 50e-6, 1e-12);
	assert_near(wlb_machine_gather_s(&machine, 2, 1, 1, 10e9), 0.5 + 50e-6, 1e-12);
	/* From one rank to 15 others on two nodes: a hop between the nodes, 14 inside them. */
	assert_near(wlb_machine_root_s(&machine, 16, 8, 1, 8e9), 50e-6 + 14.0 * machine.node_link.latency_s + 0.1,
	            1e-12);
	assert_near(wlb_machine_root_s(&machine, 1, 8, 0, 8e9), 0.0, 1e-12);
}

/* By links within the node and by its port a rank sends at the same time, as far as there are ranks for what it sends.
 */
static void an_exchange_uses_both_links_at_once(void **state)
{
	(void)state;
	struct wlb_machine machine = h100();
	machine.node_link = (struct wlb_link){200e9, 1e-6};
	assert_near(wlb_machine_exchange_s(&machine, 8, 8, 0, 7e9, 9e9), 7e9 / 200e9 + 1e-6, 1e-12);
	assert_near(wlb_machine_exchange_s(&machine, 8, 4, 0, 3e9, 4e9), 4e9 / 50e9 + 14e-6, 1e-12);
	assert_near(wlb_machine_exchange_s(&machine, 8, 1, 0, 9e11, 7e9), 7e9 / 50e9 + 14e-6, 1e-12);
	machine.switch_taper = 0.5;
	assert_near(wlb_machine_exchange_s(&machine, 8, 4, 1, 3e9, 4e9), 4e9 / 25e9 + 14e-6, 1e-12);
	machine.node_link.bytes_per_s = 10e9;
	assert_near(wlb_machine_exchange_s(&machine, 8, 4, 0, 3e9, 4e9), 3e9 / 10e9 + 1e-6, 1e-12);
	assert_true(wlb_machine_exchange_s(&machine, 1, 8, 0, 8e9, 8e9) == 0.0);
}

/* A machine of which calls inside a node were measured. */
static struct wlb_machine with_calls(void)
{
	struct wlb_machine machine = h100();
	machine.node_calls = (struct wlb_link_calls){
		.count = 2,
		.bytes = {1e3, 1e5},
		.gather_s = {1e-6, 1e-4},
		.reduce_s = {2e-6, 8e-4},
		.send_s = {1e-6, 1e-6},
	};
	return machine;
}

static void calls_inside_a_node_take_what_was_measured(void **state)
{
	(void)state;
	struct wlb_machine machine = with_calls(), fitted = h100();
	assert_near(wlb_machine_gather_s(&machine, 2, 8, 0, 2e3), 1e-6, 1e-12);
	assert_near(wlb_machine_gather_s(&machine, 2, 8, 0, 2e4), 1e-5, 1e-12);
	assert_near(wlb_machine_reduce_s(&machine, 2, 8, 0, 2e4), 4e-5, 1e-12);
	assert_near(wlb_machine_reduce_s(&machine, 4, 8, 0, 4e6), 3.0 * 8e-3, 1e-12);
	assert_near(wlb_machine_gather_s(&machine, 2, 8, 0, 1.0), 1e-6, 1e-12);
	assert_near(wlb_machine_node_send_s(&machine, 1e4), 1e-6, 1e-12);
	/* Beyond a node, and where nothing was measured, the links' latency and bandwidth count. */
	assert_near(wlb_machine_reduce_s(&machine, 16, 8, 0, 1e9), wlb_machine_reduce_s(&fitted, 16, 8, 0, 1e9), 1e-12);
	assert_near(wlb_machine_reduce_s(&fitted, 8, 8, 0, 1e9), wlb_machine_gather_s(&fitted, 8, 8, 0, 1e9), 1e-12);
	assert_near(wlb_machine_node_send_s(&fitted, 1e9),
	            fitted.node_link.latency_s + 1e9 / fitted.node_link.bytes_per_s, 1e-12);
}

/* Of the same bytes: in a node by its links; beyond it by the ports of the ranks that are on one. */
static void keys_take_the_links_of_all_ranks_of_a_stage(void **state)
{
	(void)state;
	static const struct {
		struct wlb_layout layout;
		double ports; /* 0: inside the node */
	} cases[] = {{{1, 8, 1, 1}, 0.0},
	             {{1, 2, 2, 2}, 0.0},
	             {{1, 4, 2, 8}, 4.0},
	             {{1, 2, 1, 8}, 8.0},
	             {{8, 2, 1, 8}, 1.0}};
	struct wlb_machine machine = h100();
	struct wlb_model model = llama_7b();
	double width = 2.0 * 4096.0, many = 1e9;
	double copy_s = (2.0 * (wlb_machine_op_s(&machine, WLB_OP_GATHER_ROWS, many) -
	                        wlb_machine_op_s(&machine, WLB_OP_GATHER_ROWS, 0.0)) +
	                 wlb_machine_op_s(&machine, WLB_OP_ZERO, many) - wlb_machine_op_s(&machine, WLB_OP_ZERO, 0.0)) /
	                many;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct wlb_layout *l = &cases[i].layout;
		double elements = width / l->tp, bytes = 2.0 * elements;
		double network = cases[i].ports * machine.network_link.bytes_per_s;
		double bytes_per_s = cases[i].ports > 0.0 ? fmin(network, machine.node_link.bytes_per_s)
		                                          : machine.node_link.bytes_per_s;
		assert_near(wlb_machine_key_s(&machine, &model, l), 2.0 * bytes / bytes_per_s + elements * copy_s,
		            1e-6);
	}
	assert_true(wlb_machine_key_s(&machine, &model, &(struct wlb_layout){8, 1, 4, 1}) == 0.0);
}

static void wrong_calls_are_refused(void **state)
{
	(void)state;
	struct wlb_error error;
	struct wlb_machine machine = with_calls();
	assert_int_equal(wlb_machine_check(&machine, &error), 0);
	machine.node_calls.bytes[1] = 1e3;
	assert_int_equal(wlb_machine_check(&machine, &error), -1);
	assert_non_null(strstr(error.message, "node_calls: bytes: point 1 is 1000"));
	machine = with_calls();
	machine.node_calls.reduce_s[1] = 0.0;
	assert_int_equal(wlb_machine_check(&machine, &error), -1);
	assert_non_null(strstr(error.message, "node_calls: reduce_s: value 1 is 0"));
	machine = with_calls();
	machine.node_calls.count = WLB_LINK_POINTS + 1;
	assert_int_equal(wlb_machine_check(&machine, &error), -1);
	machine = h100();
	machine.blocking_messages = 2;
	assert_int_equal(wlb_machine_check(&machine, &error), -1);
	assert_non_null(strstr(error.message, "blocking_messages is 2"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grids_are_linear_in_the_logarithms_of_lengths),
		cmocka_unit_test(attention_is_read_where_keys_are_no_fewer_than_queries),
		cmocka_unit_test(without_a_grid_attention_works_in_tiles),
		cmocka_unit_test(an_exchange_uses_both_links_at_once),
		cmocka_unit_test(fields_of_a_measurement_are_checked),
		cmocka_unit_test(links_between_switches_are_measured_or_derived),
		cmocka_unit_test(calls_inside_a_node_take_what_was_measured),
		cmocka_unit_test(keys_take_the_links_of_all_ranks_of_a_stage),
		cmocka_unit_test(wrong_calls_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
