#include "coordinator/wlbd/api/attempts/attempt_body.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/wlbd/rules/decision.h"

#define ID "6f1c0a52-7f0e-4f0e-8f3e-0c9d7c1f2a3b"

/* The caller decrefs the body, to which `out` points. */
static json_t *read_body(const char *text, struct wlbd_attempt_body *out, int expected, struct wlb_error *error)
{
	json_t *body = json_loads(text, 0, NULL);
	assert_non_null(body);
	assert_int_equal(wlbd_attempt_body_read("12", body, out, error), expected);
	return body;
}

static void absent_fields_have_defaults(void **state)
{
	struct wlbd_attempt_body out;
	struct wlb_error error = {0};
	(void)state;
	json_t *body = read_body("{\"attempt_id\":\"" ID "\",\"nodes\":[\"n1\",\"n2\"]}", &out, 0, &error);
	assert_string_equal(out.attempt_id, ID);
	assert_int_equal(json_array_size(out.nodes), 2);
	assert_int_equal(out.tasks_per_node, 1);
	assert_null(out.policy);
	assert_int_equal(out.min_nodes, 0);
	assert_null(out.previous.attempt_id);
	assert_null(out.previous.first_exit.node);
	assert_int_equal(out.previous.exit_code, WLBD_EXIT_UNKNOWN);
	json_decref(body);
}

static void every_field_is_read(void **state)
{
	struct wlbd_attempt_body out;
	struct wlb_error error = {0};
	(void)state;
	json_t *body = read_body("{\"attempt_id\":\"" ID "\",\"nodes\":[\"n1\"],\"tasks_per_node\":4,"
	                         "\"policy\":{\"layout\":\"tp=2,cp=1,pp=1,dp=2\",\"min_nodes\":3,\"spares\":1},"
	                         "\"previous\":{\"attempt_id\":\"" ID "\",\"exit_code\":137,\"step_id\":\"12.3\","
	                         "\"first_exit\":{\"rank\":5,\"signal\":9,\"node\":\"n1\"}}}",
	                         &out, 0, &error);
	assert_int_equal(out.tasks_per_node, 4);
	assert_int_equal(out.layout.fixed.tp, 2);
	assert_int_equal(out.min_nodes, 3);
	assert_int_equal(out.spares, 1);
	assert_int_equal(out.previous.exit_code, 137);
	assert_string_equal(out.previous.step_id, "12.3");
	assert_int_equal(out.previous.first_exit.rank, 5);
	assert_null(out.previous.first_exit.launch_failure.node);
	json_decref(body);
	body = read_body("{\"attempt_id\":\"" ID "\",\"nodes\":[\"n1\"],\"previous\":{\"attempt_id\":\"" ID
	                 "\",\"exit_code\":137,\"step_id\":\"12.3\",\"launch_failure\":{\"node\":\"n3\","
	                 "\"why\":\"Unspecified error\",\"time\":1790000000.5}}}",
	                 &out, 0, &error);
	assert_string_equal(out.previous.first_exit.launch_failure.node, "n3");
	assert_string_equal(out.previous.first_exit.launch_failure.why, "Unspecified error");
	assert_true(out.previous.first_exit.launch_failure.time_s == 1790000000.5);
	assert_null(out.previous.first_exit.slurm_end.why);
	json_decref(body);
	body = read_body("{\"attempt_id\":\"" ID "\",\"nodes\":[\"n1\"],\"previous\":{\"attempt_id\":\"" ID
	                 "\",\"exit_code\":137,\"step_id\":\"12.3\",\"slurm_end\":{\"node\":\"n3\","
	                 "\"why\":\"time limit\",\"time\":1790000000.5,\"certain\":true}}}",
	                 &out, 0, &error);
	assert_string_equal(out.previous.first_exit.slurm_end.why, "time limit");
	assert_true(out.previous.first_exit.slurm_end.is_certain);
	assert_null(out.previous.first_exit.slurm_end.node);
	json_decref(body);
	body = read_body("{\"attempt_id\":\"" ID "\",\"nodes\":[],\"previous\":{\"attempt_id\":\"" ID
	                 "\",\"exit_code\":1,\"step_id\":\"\"}}",
	                 &out, 0, &error);
	assert_null(out.previous.step_id); /* the launcher did not know it yet */
	json_decref(body);
}

static void refusals_name_the_field(void **state)
{
	static const struct {
		const char *text;
		const char *parts[2];
	} cases[] = {
		{"{\"attempt_id\":\"" ID "\"}", {"nodes", "missing"}},
		{"{\"attempt_id\":\"x\",\"nodes\":[]}", {"attempt_id", "UUID"}},
		{"{\"attempt_id\":\"" ID "\",\"nodes\":[\"n2\",\"n1\",\"n2\"]}",
	         {"nodes", "'n2' is there more than once"}},
		{"{\"attempt_id\":\"" ID "\",\"nodes\":[],\"tasks_per_node\":0}", {"tasks_per_node", "from 1 to 4096"}},
		{"{\"attempt_id\":\"" ID "\",\"nodes\":[],\"policy\":{\"layout\":\"fast\"}}", {"policy", "fast"}},
		{"{\"attempt_id\":\"" ID "\",\"nodes\":[],\"policy\":{\"spares\":-1}}", {"policy", "spares"}},
		{"{\"attempt_id\":\"" ID "\",\"nodes\":[],\"policy\":{\"grow_s\":604801}}", {"policy", "grow_s"}},
		{"{\"attempt_id\":\"" ID "\",\"nodes\":[],\"policy\":{\"on_fault\":\"hang=stop\"}}",
	         {"policy: on_fault", "hang=stop"}},
		{"{\"attempt_id\":\"" ID "\",\"nodes\":[],\"policy\":{\"on_fault\":1}}", {"policy", "on_fault"}},
		{"{\"attempt_id\":\"" ID "\",\"nodes\":[],\"previous\":{\"attempt_id\":\"" ID
	         "\",\"exit_code\":1,\"step_id\":\"\",\"launch_failure\":{\"node\":\"n1\",\"time\":1}}}",
	         {"launch_failure", "why"}},
		{"{\"attempt_id\":\"" ID "\",\"nodes\":[],\"previous\":{\"attempt_id\":\"" ID
	         "\",\"exit_code\":1,\"step_id\":\"\",\"launch_failure\":{\"node\":\"n1\",\"why\":\"x\",\"time\":-1}}}",
	         {"launch_failure", "time"}},
		{"{\"attempt_id\":\"" ID "\",\"nodes\":[],\"previous\":{\"attempt_id\":\"" ID
	         "\",\"exit_code\":1,\"step_id\":\"\",\"slurm_end\":{\"time\":1}}}",
	         {"slurm_end", "why"}},
		{"{\"attempt_id\":\"" ID "\",\"nodes\":[],\"previous\":{\"attempt_id\":\"" ID "\"}}",
	         {"previous", "exit_code"}},
		{"{\"attempt_id\":\"" ID "\",\"nodes\":[],\"previous\":{\"attempt_id\":\"" ID
	         "\",\"exit_code\":1,\"step_id\":\"13.0\"}}",
	         {"previous", "such as 12.0"}},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wlbd_attempt_body out;
		struct wlb_error error = {0};
		json_decref(read_body(cases[i].text, &out, -1, &error));
		for (int k = 0; k < 2; k++)
			if (strstr(error.message, cases[i].parts[k]) == NULL)
				fail_msg("'%s' is not in: %s", cases[i].parts[k], error.message);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(absent_fields_have_defaults),
		cmocka_unit_test(every_field_is_read),
		cmocka_unit_test(refusals_name_the_field),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
