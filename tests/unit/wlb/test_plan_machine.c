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

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(reads_every_machine_that_comes_with_it),
	                                   cmocka_unit_test(knows_names_and_files),
	                                   cmocka_unit_test(refuses_each_field_that_is_wrong)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
