/* The parts of `wlb calibrate` that are functions of numbers: points, pairs, the fit of a link, the vote, what is
 * refused, and the file. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "planner/machine.h"
#include "planner/machine_write.h"
#include "planner/node_type.h"
#include "worker/calibrate/axis.h"
#include "worker/calibrate/link_fit.h"
#include "worker/calibrate/slowest_rank.h"
#include "worker/calibrate/stopwatch.h"
#include "worker/calibrate/switches.h"
#include "worker/calibrate/to_machine.h"
#include "worker/calibrate/vote.h"

static void axes_fit_into_the_time(void **state)
{
	double at[WLB_AXIS_POINTS];
	(void)state;
	assert_int_equal(wlb_axis_fill(WLB_AXIS_SIDE_MIN, 4096, at), 6);
	assert_true(at[0] == 64 && at[1] == 128 && at[3] == 512 && at[4] == 2048 && at[5] == 4096);
	assert_int_equal(wlb_axis_fill(WLB_AXIS_TOKENS_MIN, 256, at), 5);
	assert_true(at[0] == 16 && at[1] == 32 && at[4] == 256);
	assert_int_equal(wlb_axis_fill(WLB_AXIS_SIDE_MIN, WLB_AXIS_MAX, at), 6);
	assert_int_equal(wlb_axis_fill(WLB_AXIS_TOKENS_MIN, WLB_AXIS_MAX, at), WLB_AXIS_POINTS);
	assert_int_equal(wlb_axis_max(wlb_axis_product_flops, 4, 1e9, 1e-3), WLB_AXIS_FINE / 2);
	assert_int_equal(wlb_axis_max(wlb_axis_product_flops, 4, 1e16, 100), WLB_AXIS_MAX);
	int most = wlb_axis_max(wlb_axis_product_flops, 4, 1e11, 10);
	assert_true(wlb_axis_product_flops(most, 4) <= 1e12 && wlb_axis_product_flops(2 * most, 4) > 1e12);
	/* Of a single length, the pairs of a triangle with its diagonal. */
	assert_true(wlb_causal_pairs(3, 3) == 6 && wlb_causal_pairs(2, 5) == 4 + 5);
	assert_true(
		wlb_axis_attention_flops(32, 1) ==
		14.0 * (16 * wlb_causal_pairs(16, 16) + 16 * wlb_causal_pairs(16, 32) + 16 * wlb_causal_pairs(32, 32)));
}

/* Two leaf switches: nodes 0, 1, 4 with 3, 2, 1 ranks, and nodes 2, 3 with 2 each. */
static const int node_of[] = {0, 0, 0, 1, 1, 2, 2, 3, 3, 4};
static const int leaf_of[] = {7, 7, 9, 9, 7};
static const struct wlb_rank_map map = {10, node_of, 5, leaf_of};

static void pairs_are_mutual_and_on_the_right_link(void **state)
{
	static const int expected[WLB_LINK_KINDS][10] = {
		{1, 0, -1, 4, 3, 6, 5, 8, 7, -1},
		{3, 4, -1, 0, 1, 7, 8, 5, 6, -1},
		{5, 6, -1, 7, 8, 0, 1, 3, 4, -1},
	};
	(void)state;
	for (int kind = 0; kind < WLB_LINK_KINDS; kind++)
		for (int rank = 0; rank < map.ranks; rank++)
			assert_int_equal(wlb_pair_partner(&map, kind, rank), expected[kind][rank]);
	const struct wlb_rank_map one_switch = {10, node_of, 5, NULL};
	assert_int_equal(wlb_pair_partner(&one_switch, WLB_LINK_NETWORK, 5), 7);
	assert_int_equal(wlb_pair_partner(&one_switch, WLB_LINK_SWITCH, 0), -1);
}

static void a_fit_returns_the_link_that_made_the_times(void **state)
{
	struct wlb_link_point points[7];
	struct wlb_link link;
	struct wlb_error error;
	(void)state;
	for (int i = 0; i < 7; i++) {
		points[i].bytes = 4096.0 * pow(4, i);
		points[i].seconds = 12e-6 + points[i].bytes / 5e9;
	}
	assert_int_equal(wlb_link_fit(points, 7, &link, &error), 0);
	assert_true(fabs(link.latency_s / 12e-6 - 1.0) < 1e-9 && fabs(link.bytes_per_s / 5e9 - 1.0) < 1e-9);
	/* Bandwidth that falls with size: the line would cut the axis below 0. */
	for (int i = 0; i < 7; i++)
		points[i].seconds = pow(points[i].bytes, 1.2) * 1e-10;
	assert_int_equal(wlb_link_fit(points, 7, &link, &error), 0);
	assert_true(link.latency_s == 0.0 && link.bytes_per_s > 0.0);
	for (int i = 0; i < 7; i++)
		points[i].seconds = 1.0 / points[i].bytes;
	assert_int_equal(wlb_link_fit(points, 7, &link, &error), -1);
	assert_non_null(strstr(error.message, "take no longer than those of 4096"));
	assert_int_equal(wlb_link_fit(points, 1, &link, &error), -1);
}

static void ranks_that_differ_are_outvoted(void **state)
{
	/* Rank 2 has a third of the speed; rank 3 has not measured the second value, rank 4 nothing. */
	const double values[] = {100, 10, 104, 10.4, 33, 3.3, 96, 0, 0, 0};
	const struct wlb_votes votes = {"products", values, 5, 2, 2};
	double factor[5], medians[2];
	struct wlb_error error;
	(void)state;
	assert_int_equal(wlb_vote(&votes, 1.5, factor, &error), 1);
	assert_true(factor[2] < 0.4 && factor[4] == 0.0);
	assert_true(wlb_vote_counts(factor[0], 1.5) && !wlb_vote_counts(factor[2], 1.5));
	assert_int_equal(wlb_vote_medians(&votes, 1.5, factor, medians, &error), 0);
	assert_true(medians[0] == 100 && medians[1] == 10.2);
	assert_int_equal(wlb_vote(&votes, 10, factor, &error), 0);
}

static void a_vote_without_majority_is_refused(void **state)
{
	const double two[] = {10, 30}, all[] = {10, 11, 40, 41}, one[] = {10};
	const struct wlb_votes votes[] = {{"memory", two, 2, 1, 1}, {"memory", all, 4, 1, 1}, {"memory", one, 1, 1, 1}};
	double factor[4];
	struct wlb_error error;
	(void)state;
	assert_int_equal(wlb_vote(&votes[0], 1.5, factor, &error), -1);
	assert_non_null(strstr(error.message, "memory: 1 of 2 ranks"));
	assert_int_equal(wlb_vote(&votes[1], 1.5, factor, &error), -1);
	assert_int_equal(wlb_vote(&votes[2], 1.5, factor, &error), 0);
}

/* A calibration as an idle device gives it. */
static struct wlb_calibration calibration(void)
{
	struct wlb_calibration c = {.elementwise = {.memory_bytes_per_s = 2e10, .operation_s = 1e-6}};
	for (int op = 0; op < WLB_OPERATIONS; op++)
		c.elementwise.operations[op] = (struct wlb_op_time){1e-7 * op, 1e-9 * (op + 1)};
	c.node_calls = (struct wlb_link_calls){.count = 2,
	                                       .bytes = {4096, 65536},
	                                       .gather_s = {1e-5, 2e-5},
	                                       .reduce_s = {2e-5, 5e-5},
	                                       .send_s = {8e-6, 1e-5}};
	c.gemm.rows_count = wlb_axis_fill(WLB_AXIS_SIDE_MIN, 256, c.gemm.rows);
	c.gemm.depth_count = wlb_axis_fill(WLB_AXIS_SIDE_MIN, 128, c.gemm.depth);
	c.gemm.columns_count = wlb_axis_fill(WLB_AXIS_SIDE_MIN, 128, c.gemm.columns);
	for (int i = 0; i < 3 * 2 * 2; i++)
		c.gemm.flops_per_s[i] = 1e11 + 1e9 * i;
	c.attention.q_count = wlb_axis_fill(WLB_AXIS_TOKENS_MIN, 32, c.attention.q_tokens);
	c.attention.k_count = wlb_axis_fill(WLB_AXIS_TOKENS_MIN, 64, c.attention.k_tokens);
	for (int i = 0; i < 6; i++)
		if (i != 3) { /* 32 queries of 16 keys */
			c.attention.forward_flops_per_s[i] = 5e10 + 1e9 * i;
			c.attention.backward_flops_per_s[i] = 6e10 + 1e9 * i;
		}
	c.rank_memory_bytes = 16e9;
	c.links[WLB_LINK_NODE] = (struct wlb_link){.bytes_per_s = 1e10, .latency_s = 1e-5};
	c.links[WLB_LINK_SWITCH] = (struct wlb_link){.bytes_per_s = 1e9, .latency_s = 3e-5};
	return c;
}

static const struct wlb_node_facts facts = {
	.type = "some processor x 8", .ranks = 4, .threads = 3, .element_bytes = 4, .blocking_messages = 1};

static void the_file_is_read_back_as_it_was(void **state)
{
	struct wlb_calibration c = calibration();
	struct wlb_machine machine, read;
	struct wlb_error error;
	(void)state;
	assert_int_equal(wlb_machine_file_read("CPU", &machine, &error), 0);
	double network = machine.network_link.bytes_per_s;
	if (wlb_calibration_to_machine(&c, &facts, &machine, &error) < 0)
		fail_msg("%s", error.message);
	assert_string_equal(machine.name, facts.type);
	assert_int_equal(machine.gpus_per_node, 4);
	assert_true(machine.memory_bytes == 16e9 && machine.peak_flops == 1.11e11 && machine.gemm_efficiency == 1.0);
	assert_true(machine.network_link.bytes_per_s == network && machine.node_link.bytes_per_s == 1e10);
	const struct wlb_measured measured = {"2026-11-22T06:00:00Z", "n1", "cpu", "float32", "0", 8, 2};
	char *text = wlb_machine_text(&machine, &measured, &error);
	assert_non_null(text);
	if (wlb_machine_file_parse(text, strlen(text), &read, &error) < 0)
		fail_msg("%s", error.message);
	free(text);
	assert_string_equal(read.name, machine.name);
	assert_memory_equal(&read.gemm, &machine.gemm, sizeof(read.gemm));
	assert_memory_equal(&read.attention, &machine.attention, sizeof(read.attention));
	assert_memory_equal(&read.switch_link, &machine.switch_link, sizeof(read.switch_link));
	assert_memory_equal(&read.node_calls, &c.node_calls, sizeof(read.node_calls));
	assert_true(read.operation_s == machine.operation_s && read.element_bytes == 4);
	assert_true(read.blocking_messages == 1 && read.measured_threads == 3);
	for (int op = 0; op < WLB_OPERATIONS; op++) {
		const struct wlb_op_time *was = &c.elementwise.operations[op], *is = &read.operations[op];
		assert_true(fabs(is->call_s - was->call_s) <= 1e-8 * was->call_s);
		assert_true(fabs(is->element_s - was->element_s) <= 1e-8 * was->element_s);
	}
}

static void assert_refused(const struct wlb_calibration *c, const char *words)
{
	struct wlb_machine machine;
	struct wlb_error error = {0};
	assert_int_equal(wlb_machine_file_read("CPU", &machine, &error), 0);
	assert_int_equal(wlb_calibration_to_machine(c, &facts, &machine, &error), -1);
	if (strstr(error.message, words) == NULL)
		fail_msg("'%s' does not say '%s'", error.message, words);
}

static void absurd_values_are_refused(void **state)
{
	(void)state;
	struct wlb_calibration c = calibration();
	c.gemm.flops_per_s[11] = 1e9;
	assert_refused(&c, "product of 256 x 128 x 128: 1e+09 FLOP/s, where the next smaller has 1.07e+11");
	c = calibration();
	c.attention.backward_flops_per_s[2] = 1e9;
	assert_refused(&c, "attention of 16 queries, 64 keys");
	c = calibration();
	c.attention.forward_flops_per_s[0] = NAN;
	assert_refused(&c, "attention: forward_flops_per_s: value 0 is nan");
	c = calibration();
	for (int i = 0; i < 12; i++)
		c.gemm.flops_per_s[i] = 1e19;
	assert_refused(&c, "peak_flops is 1e+19");
	c = calibration();
	c.elementwise.memory_bytes_per_s = 1e3;
	assert_refused(&c, "memory_bytes_per_s is 1000");
	c = calibration();
	c.links[WLB_LINK_NETWORK].bytes_per_s = INFINITY;
	assert_refused(&c, "network_link.bytes_per_s is inf");
	c = calibration();
	c.elementwise.operation_s = 5;
	assert_refused(&c, "operation_s is 5");
	c = calibration();
	c.elementwise.operations[WLB_OP_ADAMW].element_s = 1.0;
	assert_refused(&c, "operations: adamw: element_s is 1: it must be between 0 and 0.001");
	c = calibration();
	c.elementwise.operations[WLB_OP_ROPE].element_s = 0.0;
	assert_refused(&c, "operations: rope: element_s is 0: must be above 0");
	c = calibration();
	c.elementwise.operations[WLB_OP_ADD].element_s = 1e-12; /* 12 bytes */
	assert_refused(&c, "operations: add: of an element: 12 bytes in 1e-12 s: must be at most 2e+11 bytes/s");
	c = calibration();
	c.elementwise.operations[WLB_OP_ROPE_ANGLES].element_s = 1e-12;
	assert_refused(&c, "operations: rope_angles: element_s is 1e-12: must be at least 9.00901e-12");
	c = calibration();
	for (int i = 0; i < 6; i++)
		c.attention.forward_flops_per_s[i] = 1e12;
	assert_refused(&c, "attention of 16 queries, 16 keys: 1e+12 FLOP/s: must be at most 2.22e+11");
	c = calibration();
	c.node_calls.send_s[1] = 1e-9;
	assert_refused(&c, "node_calls: send_s: 65536 bytes in 1e-09 s: must be at most 2e+11 bytes/s");
	c = calibration();
	c.links[WLB_LINK_SWITCH].bytes_per_s = 1e12;
	assert_refused(&c, "switch_link: 1e+12 bytes in 1 s");
	c = calibration();
	c.elementwise.operations[WLB_OP_COPY].call_s = NAN;
	assert_refused(&c, "operations: copy: call_s is nan");
}

static void a_node_has_the_type_of_its_processor(void **state)
{
	char text[] = "processor\t: 0\nmodel\t\t: 2\nmodel name\t: AMD EPYC 7763 \x01 \nmodel name\t: other\n",
	     type[64];
	char unnamed[] = "processor\t: 0\nmodel name\n";
	char arm[] = "processor\t: 0\nCPU implementer\t: 0x41\nCPU variant\t: 0x0\nCPU part\t: 0xd4f\n";
	(void)state;
	FILE *file = fmemopen(text, sizeof(text) - 1, "r");
	wlb_node_type_of_cpu(file, 128, type, sizeof(type));
	fclose(file);
	assert_string_equal(type, "AMD EPYC 7763 x 128");
	file = fmemopen(unnamed, sizeof(unnamed) - 1, "r");
	wlb_node_type_of_cpu(file, 4, type, sizeof(type));
	fclose(file);
	assert_string_equal(type, "processor x 4");
	file = fmemopen(arm, sizeof(arm) - 1, "r");
	wlb_node_type_of_cpu(file, 72, type, sizeof(type));
	fclose(file);
	assert_string_equal(type, "CPU 0x41 part 0xd4f x 72");
	wlb_node_type_of_cpu(NULL, 4, type, sizeof(type));
	assert_string_equal(type, "processor x 4");
	assert_true(wlb_node_memory_bytes() > 1e8);
}

static void the_leaf_switch_is_the_last_before_the_node(void **state)
{
	int length = 0;
	(void)state;
	const char *leaf = wlb_leaf_in_address("spine.leaf2.n7", "switch.switch.node", &length);
	assert_non_null(leaf);
	assert_int_equal(length, 5);
	assert_memory_equal(leaf, "leaf2", 5);
	assert_non_null(wlb_leaf_in_address("s1.n7", "switch.node", &length));
	assert_null(wlb_leaf_in_address("n7", "node", &length));
	assert_null(wlb_leaf_in_address("b1.n7", "block.node", &length));
	assert_null(wlb_leaf_in_address("", "", &length));
	assert_null(wlb_leaf_in_address(".n7", "switch.node", &length));
}

static void the_median_of_an_even_count_is_between(void **state)
{
	double odd[] = {3, 1, 2}, even[] = {4, 1, 2, 3};
	(void)state;
	assert_true(wlb_median(odd, 3) == 2 && wlb_median(even, 4) == 2.5);
}

static void the_slowest_rank_is_no_sick_one(void **state)
{
	double alone[] = {3}, near[] = {1.0, 1.2, 1.1}, sick[] = {9.0, 1.0, 1.1, 1.0, 5.0};
	(void)state;
	assert_true(wlb_slowest(alone, 1, 1.5) == 3.0);
	assert_true(wlb_slowest(near, 3, 1.5) == 1.2);
	assert_true(wlb_slowest(sick, 5, 1.5) == 1.1);
}

/* The product in the middle takes 1.2 times as long as in the grid. */
static void the_slowest_rank_is_in_the_file(void **state)
{
	struct wlb_calibration c = calibration();
	struct wlb_machine machine;
	struct wlb_error error;
	(void)state;
	const struct wlb_middle_product middle = wlb_middle_product(&c.gemm);
	double flops = 2.0 * middle.rows * middle.depth * middle.columns;
	for (int turn = 0; turn < 2; turn++) {
		double factor = turn == 0 ? 1.2 : 0.9; /* at least 1 */
		c.slowest_product_s = factor * flops / middle.flops_per_s;
		assert_int_equal(wlb_machine_file_read("CPU", &machine, &error), 0);
		assert_int_equal(wlb_calibration_to_machine(&c, &facts, &machine, &error), 0);
		assert_true(fabs(machine.slowest_rank - fmax(1.0, factor)) < 1e-12);
	}
	const struct wlb_measured measured = {"2026-11-22T06:00:00Z", "n1", "cpu", "float32", "0", 8, 2};
	machine.slowest_rank = 1.125;
	char *text = wlb_machine_text(&machine, &measured, &error);
	assert_int_equal(wlb_machine_file_parse(text, strlen(text), &machine, &error), 0);
	assert_true(machine.slowest_rank == 1.125);
	free(text);
}

static void expect_gpu_type(const char *per_node, const char *all, const char *expected)
{
	char type[16];
	if (per_node != NULL)
		setenv("SLURM_GPUS_PER_NODE", per_node, 1);
	else
		unsetenv("SLURM_GPUS_PER_NODE");
	setenv("SLURM_GPUS", all, 1);
	assert_int_equal(wlb_gpu_type(type, sizeof(type)), expected != NULL);
	if (expected != NULL)
		assert_string_equal(type, expected);
	unsetenv("SLURM_GPUS_PER_NODE");
	unsetenv("SLURM_GPUS");
}

/* Of GPUs of several types none is that of every rank. */
static void a_job_has_one_type_of_gpus_or_none(void **state)
{
	(void)state;
	expect_gpu_type("h100:8", "16", "h100");
	expect_gpu_type("8", "a100:16", "a100");
	expect_gpu_type(NULL, "h100:16", "h100");
	expect_gpu_type("h100:4,a100:4", "16", NULL);
	expect_gpu_type(NULL, "4,a100:4", NULL);
	expect_gpu_type("8", "16", NULL);
	expect_gpu_type("a-type-of-16-chr:8", "16", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(axes_fit_into_the_time),
		cmocka_unit_test(pairs_are_mutual_and_on_the_right_link),
		cmocka_unit_test(a_fit_returns_the_link_that_made_the_times),
		cmocka_unit_test(ranks_that_differ_are_outvoted),
		cmocka_unit_test(a_vote_without_majority_is_refused),
		cmocka_unit_test(the_file_is_read_back_as_it_was),
		cmocka_unit_test(absurd_values_are_refused),
		cmocka_unit_test(a_node_has_the_type_of_its_processor),
		cmocka_unit_test(the_leaf_switch_is_the_last_before_the_node),
		cmocka_unit_test(the_median_of_an_even_count_is_between),
		cmocka_unit_test(the_slowest_rank_is_no_sick_one),
		cmocka_unit_test(a_job_has_one_type_of_gpus_or_none),
		cmocka_unit_test(the_slowest_rank_is_in_the_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
