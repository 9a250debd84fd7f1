#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "planner/machine.h"

static void reads_every_machine_that_comes_with_it(void **state)
{
	static const char *const names[] = {"A100", "B200", "cpu", "H100", "h200", "mi300x"};
	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct wlb_machine machine;
		struct wlb_error error;
		if (wlb_machine_file_read(names[i], &machine, &error) < 0)
			fail_msg("%s", error.message);
		assert_int_equal(strcasecmp(machine.name, names[i]), 0);
	}
}

static void knows_names_and_files(void **state)
{
	struct wlb_machine machine;
	struct wlb_error error;
	(void)state;
	assert_int_equal(wlb_machine_file_read("abacus", &machine, &error), -1);
	assert_non_null(strstr(error.message, "'abacus' is unknown"));
	assert_non_null(strstr(error.message, " H100"));
	assert_int_equal(wlb_machine_file_read("/none/abacus.json", &machine, &error), -1);
	assert_non_null(strstr(error.message, "/none/abacus.json"));
	assert_int_equal(wlb_machine_file_read(WLB_TEST_MACHINES "/H100.json", &machine, &error), 0);
	assert_int_equal(machine.gpus_per_node, 8);
}

/* The file of H100 with one field replaced, or taken out where `value` is NULL. */
static int parse_changed(const char *field, json_t *value, struct wlb_error *error)
{
	struct wlb_machine machine;
	json_t *root = json_load_file(WLB_TEST_MACHINES "/H100.json", 0, NULL);
	assert_non_null(root);
	if (value == NULL)
		json_object_del(root, field);
	else
		json_object_set_new(root, field, value);
	char *text = json_dumps(root, 0);
	assert_non_null(text);
	int rc = wlb_machine_file_parse(text, strlen(text), &machine, error);
	free(text);
	json_decref(root);
	return rc;
}

static void refuses_each_field_that_is_wrong(void **state)
{
	static const char *const fields[] = {
		"name",         "gpus_per_node", "peak_flops",   "gemm_efficiency", "attention_efficiency",
		"memory_bytes", "node_link",     "network_link", "switch_taper",    "attention_tile_tokens"};
	struct wlb_error error;
	(void)state;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		assert_int_equal(parse_changed(fields[i], NULL, &error), -1);
		assert_non_null(strstr(error.message, fields[i]));
		assert_int_equal(parse_changed(fields[i], json_true(), &error), -1);
		assert_non_null(strstr(error.message, fields[i]));
	}
	assert_int_equal(parse_changed("peak_flop", json_real(1e15), &error), -1);
	assert_non_null(strstr(error.message, "'peak_flop' is unknown"));
	assert_int_equal(parse_changed("gemm_efficiency", json_real(1.5), &error), -1);
	assert_non_null(strstr(error.message, "gemm_efficiency is 1.5"));
	assert_int_equal(parse_changed("gemm_curve", json_pack("{s:[i], s:[]}", "at", 128, "value"), &error), -1);
	assert_non_null(strstr(error.message, "gemm_curve"));
	assert_int_equal(parse_changed("gemm_curve", json_pack("{s:[i], s:[f]}", "at", 128, "value", 0.5), &error), 0);
}

/* The file of H100 with the members of `text` added. */
static int parse_with(const char *text, struct wlb_machine *machine, struct wlb_error *error)
{
	json_t *root = json_load_file(WLB_TEST_MACHINES "/H100.json", 0, NULL), *more = json_loads(text, 0, NULL);
	assert_non_null(root);
	assert_non_null(more);
	json_object_update(root, more);
	char *file = json_dumps(root, 0);
	int rc = wlb_machine_file_parse(file, strlen(file), machine, error);
	free(file);
	json_decref(root);
	json_decref(more);
	return rc;
}

static void reads_what_was_measured(void **state)
{
	struct wlb_machine machine;
	struct wlb_error error = {""};
	(void)state;
	parse_with("{\"operation_s\": 2e-6, \"element_bytes\": 4, \"measured\": {\"host\": \"n1\"},"
	           "\"switch_link\": {\"bytes_per_s\": 1e10, \"latency_s\": 1e-5}, \"rotary_angle_s\": 1e-8,"
	           "\"node_calls\": {\"bytes\": [1e3, 1e5], \"gather_s\": [1e-6, 2e-6], \"reduce_s\": [3e-6, 4e-6],"
	           "\"send_s\": [5e-6, 6e-6]}, \"blocking_messages\": 1,"
	           "\"gemm\": {\"rows\": [64, 128], \"depth\": [32, 96, 256], \"columns\": [16],"
	           "\"flops_per_s\": [[[1e9], [2e9], [3e9]], [[4e9], [5e9], [6e9]]]},"
	           "\"attention\": {\"q_tokens\": [8, 64], \"k_tokens\": [32, 64],"
	           "\"forward_flops_per_s\": [[1e9, 2e9], [0, 3e9]],"
	           "\"backward_flops_per_s\": [[4e9, 5e9], [0, 6e9]]}}",
	           &machine, &error);
	assert_string_equal(error.message, "");
	assert_true(machine.operation_s == 2e-6 && machine.element_bytes == 4);
	assert_true(machine.switch_link.bytes_per_s == 1e10 && machine.switch_link.latency_s == 1e-5);
	assert_true(machine.operations[WLB_OP_ROPE_ANGLES].element_s == 1e-8 && machine.blocking_messages == 1);
	assert_true(machine.node_calls.count == 2 && machine.node_calls.bytes[1] == 1e5);
	assert_true(machine.node_calls.reduce_s[0] == 3e-6 && machine.node_calls.send_s[1] == 6e-6);
	assert_true(machine.gemm.rows_count == 2 && machine.gemm.depth_count == 3 && machine.gemm.columns_count == 1);
	assert_true(machine.gemm.depth[2] == 256.0 && machine.gemm.flops_per_s[1] == 2e9);
	assert_true(machine.gemm.flops_per_s[3] == 4e9 && machine.gemm.flops_per_s[5] == 6e9);
	assert_true(machine.attention.q_count == 2 && machine.attention.k_count == 2);
	assert_true(machine.attention.forward_flops_per_s[3] == 3e9);
	assert_true(machine.attention.backward_flops_per_s[1] == 5e9);
}

/* Files of before have gemm_curve, shares of the peak by tokens alone. */
/* Files from before there were operations have the time of an angle alone. */
static void reads_the_time_of_each_operation(void **state)
{
	struct wlb_machine machine;
	struct wlb_error error = {""};
	(void)state;
	parse_with("{\"rotary_angle_s\": 1e-8, \"operations\": {\"adamw\": {\"call_s\": 2e-6, \"element_s\": 3e-9},"
	           "\"rope_angles\": {\"call_s\": 0, \"element_s\": 5e-9}}}",
	           &machine, &error);
	assert_string_equal(error.message, "");
	assert_true(machine.operations[WLB_OP_ADAMW].call_s == 2e-6);
	assert_true(machine.operations[WLB_OP_ADAMW].element_s == 3e-9);
	assert_true(machine.operations[WLB_OP_ROPE_ANGLES].element_s == 5e-9);
	assert_true(machine.operations[WLB_OP_ADD].element_s == 0.0);
}

static void reads_a_curve_as_a_grid_of_one_depth(void **state)
{
	struct wlb_machine machine;
	struct wlb_error error = {""};
	(void)state;
	assert_int_equal(parse_with("{\"gemm_curve\": {\"at\": [128, 4096], \"value\": [0.5, 0.7]}}", &machine, &error),
	                 0);
	assert_int_equal(machine.gemm.rows_count, 2);
	double flops = 2.0 * 4096 * 512 * 1024;
	assert_true(wlb_machine_gemm_s(&machine, 4096, 512, 1024) / (flops / (0.7 * machine.peak_flops)) - 1.0 < 1e-12);
	assert_int_equal(parse_with("{\"gemm_curve\": null}", &machine, &error), 0);
	assert_int_equal(machine.gemm.rows_count, 0);
}

static void refuses_rates_that_are_wrong(void **state)
{
	static const struct {
		const char *text, *part;
	} wrong[] = {
		{"{\"name\": \"\\u001b[2J\"}", "without control characters"},
		{"{\"gemm\": 5}", "gemm: rows must be a list"},
		{"{\"gemm\": {\"rows\": [1], \"depth\": [1], \"columns\": [1]}}", "list of 1 lists"},
		{"{\"gemm\": {\"rows\": [1], \"depth\": [1], \"columns\": [1, 2], \"flops_per_s\": [[[1e9]]]}}",
	         "list 0 must have 2 numbers"},
		{"{\"gemm\": {\"rows\": [1], \"depth\": [1], \"columns\": [1], \"flops_per_s\": [[[\"a\"]]]}}",
	         "must be a number"},
		{"{\"gemm\": {\"rows\": [1], \"depth\": [1], \"columns\": [1], \"flops_per_s\": [[[-1e9]]]}}",
	         "must be FLOP/s"},
		{"{\"gemm\": {\"rows\": [2, 1], \"depth\": [1], \"columns\": [1], \"flops_per_s\": [[[1e9]], "
	         "[[1e9]]]}}",
	         "rows: point 1"},
		{"{\"gemm\": {\"rows\": [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}}", "1 to 16 numbers"},
		{"{\"gemm\": {}, \"gemm_curve\": {}}", "both given"},
		{"{\"attention\": {\"q_tokens\": [64], \"k_tokens\": [32], \"forward_flops_per_s\": [[1e9]],"
	         "\"backward_flops_per_s\": [[1e9]]}}",
	         "keys must be no fewer"},
		{"{\"attention\": {\"q_tokens\": [32], \"k_tokens\": [32], \"forward_flops_per_s\": [[1e9]],"
	         "\"backward_flops_per_s\": [[0]]}}",
	         "backward_flops_per_s: value 0"},
		{"{\"processors\": 132, \"gemm_tile_rows\": 1, \"gemm_tile_columns\": 1}", "gemm_tile_rows"},
		{"{\"operation_s\": -1}", "operation_s is -1"},
		{"{\"operations\": []}", "operations: it must be an object"},
		{"{\"operations\": {\"sort\": {\"call_s\": 0, \"element_s\": 1e-9}}}", "operations: 'sort' is unknown"},
		{"{\"operations\": {\"add\": {\"call_s\": 0}}}", "operations: add: element_s: each value must be a"},
		{"{\"operations\": {\"add\": 1e-9}}", "operations: add: call_s: each value must be a number"},
		{"{\"operations\": {\"add\": {\"call_s\": -1, \"element_s\": 1e-9}}}", "operations: add: call_s is -1"},
		{"{\"operations\": {\"add\": {\"call_s\": 0, \"element_s\": 1}}}", "operations: add: element_s is 1"},
		{"{\"blocking_messages\": 2}", "blocking_messages is 2"},
		{"{\"node_calls\": {\"bytes\": [1e3], \"gather_s\": [1e-6, 1e-6]}}",
	         "bytes has 1 numbers and gather_s 2"},
		{"{\"node_calls\": {\"bytes\": [1e3], \"gather_s\": [1e-6], \"reduce_s\": [1e-6], \"send_s\": [0]}}",
	         "send_s: value 0 is 0"},
		{"{\"switch_link\": {\"bytes_per_s\": 5, \"latency_s\": 0}}", "switch_link.bytes_per_s"},
	};
	struct wlb_machine machine;
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct wlb_error error = {""};
		assert_int_equal(parse_with(wrong[i].text, &machine, &error), -1);
		if (strstr(error.message, wrong[i].part) == NULL)
			fail_msg("'%s' does not say '%s'", error.message, wrong[i].part);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(reads_every_machine_that_comes_with_it),
	                                   cmocka_unit_test(knows_names_and_files),
	                                   cmocka_unit_test(refuses_each_field_that_is_wrong),
	                                   cmocka_unit_test(reads_what_was_measured),
	                                   cmocka_unit_test(reads_the_time_of_each_operation),
	                                   cmocka_unit_test(reads_a_curve_as_a_grid_of_one_depth),
	                                   cmocka_unit_test(refuses_rates_that_are_wrong)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
