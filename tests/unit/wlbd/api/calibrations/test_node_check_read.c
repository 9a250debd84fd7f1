/* The body of POST /v1/node_checks. */
#include "coordinator/wlbd/api/calibrations/node_check_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void what_check_node_sends(void **state)
{
	static const char text[] =
		"{\"node\":\"n3\",\"healthy\":false,\"reason\":\"disk /tmp: 3 MiB/s; limit: 10\",\"checks\":["
		"{\"check\":\"disk /tmp\",\"verdict\":\"failed\",\"measured\":\"3 MiB/s\",\"limit\":\"10\"},"
		"{\"check\":\"speed\",\"verdict\":\"not checked\",\"measured\":\"no file\",\"limit\":null}]}";
	struct wlbd_node_check check;
	struct wlb_error error;
	json_t *body = json_loads(text, 0, NULL);
	(void)state;
	assert_int_equal(wlbd_node_check_read(body, &check, &error), 0);
	assert_string_equal(check.node, "n3");
	assert_false(check.healthy);
	assert_false(check.clears);
	assert_string_equal(check.reason, "disk /tmp: 3 MiB/s; limit: 10");
	assert_int_equal(json_array_size(check.checks), 2);
	json_decref(body);
}

static void a_healthy_node(void **state)
{
	struct wlbd_node_check check;
	struct wlb_error error;
	json_t *body = json_loads("{\"node\":\"n3\",\"healthy\":true,\"reason\":null,\"clears\":true}", 0, NULL);
	(void)state;
	assert_int_equal(wlbd_node_check_read(body, &check, &error), 0);
	assert_true(check.healthy && check.clears);
	assert_string_equal(check.reason, "");
	assert_null(check.checks);
	json_decref(body);
}

static void refusals(void **state)
{
	static const struct {
		const char *body, *says;
	} cases[] = {
		{"{\"healthy\":true}", "node"},
		{"{\"node\":\"\",\"healthy\":true}", "node"},
		{"{\"node\":\"n3\"}", "healthy"},
		{"{\"node\":\"n3\",\"healthy\":\"yes\"}", "healthy"},
		{"{\"node\":\"n3\",\"healthy\":false}", "reason"},
		{"{\"node\":\"n3\",\"healthy\":true,\"reason\":\"disk\"}", "reason"},
		{"{\"node\":\"n3\",\"healthy\":false,\"reason\":\"a\\u001b[2J\"}", "printable"},
		{"{\"node\":\"n3\",\"healthy\":false,\"reason\":\"r\",\"clears\":true}", "clears"},
		{"{\"node\":\"n3\",\"healthy\":true,\"checks\":{}}", "checks"},
		{"{\"node\":\"n3\",\"healthy\":true,\"checks\":[1]}", "entry 0"},
		{"{\"node\":\"n3\",\"healthy\":true,\"checks\":[{\"check\":\"a\",\"verdict\":\"fine\",\"measured\":"
	         "\"\"}]}",
	         "verdict"},
		{"{\"node\":\"n3\",\"healthy\":true,\"checks\":[{\"check\":\"a\",\"verdict\":\"ok\",\"measured\":\"\","
	         "\"limit\":"
	         "null,\"more\":[]}]}",
	         "more fields"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wlbd_node_check check;
		struct wlb_error error = {0};
		json_t *body = json_loads(cases[i].body, 0, NULL);
		assert_non_null(body);
		assert_int_equal(wlbd_node_check_read(body, &check, &error), -1);
		if (strstr(error.message, cases[i].says) == NULL)
			fail_msg("'%s' is not in '%s'", cases[i].says, error.message);
		json_decref(body);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_check_node_sends),
		cmocka_unit_test(a_healthy_node),
		cmocka_unit_test(refusals),
	};
	return cmocka_run_group_tests_name("node_check_read", tests, NULL, NULL);
}
