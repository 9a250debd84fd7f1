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
	assert_near(wlb_machine_attention_s(&machine, 3, 32, 16, 16, 0), 384.0 * 136 / 1e9, 1e-12);
	assert_near(wlb_machine_attention_s(&machine, 3, 32, 16, 64, 1), 2.5 * 384.0 * 904 / 4e9, 1e-12);
	assert_near(wlb_machine_attention_s(&machine, 3, 32, 16, 32, 0), 384.0 * 392 / 2e9, 1e-12);
	assert_near(wlb_machine_attention_s(&machine, 3, 32, 64, 64, 0), 384.0 * 2080 / 5e9, 1e-12);
	assert_near(wlb_machine_attention_s(&machine, 3, 32, 32, 32, 0), 384.0 * 528 / 3.5e9, 1e-12);
}

static void without_a_grid_attention_works_in_tiles(void **state)
{
	(void)state;
	struct wlb_machine machine = h100();
	double full_s = wlb_machine_attention_s(&machine, 1, 128, 128, 1000, 0);
	assert_near(full_s, 128.0 * (1000 - 63.5 + 200) * 512 / (989.4e12 * 0.647), 1e-12);
	/* A query alone takes a whole tile, and two tiles take twice one. */
	assert_near(wlb_machine_attention_s(&machine, 1, 128, 1, 1000 - 63.5, 0), full_s, 1e-12);
	assert_near(wlb_machine_attention_s(&machine, 1, 128, 256, 1000 + 64, 0), 2 * full_s, 1e-12);
	assert_near(wlb_machine_attention_s(&machine, 1, 128, 128, 1000, 1), full_s * 2.5 * 0.647 / 0.571, 1e-12);
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
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grids_are_linear_in_the_logarithms_of_lengths),
		cmocka_unit_test(attention_is_read_where_keys_are_no_fewer_than_queries),
		cmocka_unit_test(without_a_grid_attention_works_in_tiles),
		cmocka_unit_test(fields_of_a_measurement_are_checked),
		cmocka_unit_test(links_between_switches_are_measured_or_derived),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
