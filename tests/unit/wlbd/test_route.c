#include "coordinator/wlbd/http/route.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct wlbd_route routes[] = {
	{.method = "POST", .pattern = "/v1/runs/*/report"}, {.method = "POST", .pattern = "/v1/runs"},
	{.method = "GET", .pattern = "/v1/runs"},           {.method = "GET", .pattern = "/v1/runs/*"},
	{.method = "GET", .pattern = "/healthz"},
};

static int match(const char *method, const char *path, const struct wlbd_route **route, char *run)
{
	return wlbd_route_match(routes, sizeof(routes) / sizeof(routes[0]), method, path, route, run);
}

static void test_matches(void **state)
{
	const struct wlbd_route *route;
	char run[WLBD_RUN_NAME_SIZE];
	(void)state;
	assert_int_equal(match("GET", "/healthz", &route, run), WLBD_MATCH);
	assert_ptr_equal(route, &routes[4]);
	assert_string_equal(run, "");
	assert_int_equal(match("GET", "/v1/runs/12.2", &route, run), WLBD_MATCH);
	assert_ptr_equal(route, &routes[3]);
	assert_string_equal(run, "12.2");
	assert_int_equal(match("POST", "/v1/runs/4294967295/report", &route, run), WLBD_MATCH);
	assert_string_equal(run, "4294967295");
	assert_int_equal(match("POST", "/v1/runs", &route, run), WLBD_MATCH);
	assert_ptr_equal(route, &routes[1]);
}

static void test_no_such_path_or_method(void **state)
{
	const struct wlbd_route *route;
	char run[WLBD_RUN_NAME_SIZE];
	(void)state;
	assert_int_equal(match("GET", "/", &route, run), WLBD_MATCH_NO_PATH);
	assert_int_equal(match("GET", "/v1/runs/", &route, run), WLBD_MATCH_NO_PATH);
	assert_int_equal(match("GET", "/v1/runs/12/nothing", &route, run), WLBD_MATCH_NO_PATH);
	assert_int_equal(match("GET", "/v1/runs/12/report/", &route, run), WLBD_MATCH_NO_PATH);
	assert_int_equal(match("POST", "/healthz", &route, run), WLBD_MATCH_NO_METHOD);
	assert_int_equal(match("GET", "/v1/runs/12/report", &route, run), WLBD_MATCH_NO_METHOD);
}

static void test_bad_run(void **state)
{
	static const char *const names[] = {
		"x",  "0",      "012",         "12.", "12.0",       "12.x",
		".2", "12.2.3", "12345678901", "-1",  "12.1234567", "1234567890123456789012345678901234567890"};
	const struct wlbd_route *route;
	char run[WLBD_RUN_NAME_SIZE];
	(void)state;
	assert_int_equal(match("GET", "/v1/runs/12345678901", &route, run), WLBD_MATCH_BAD_RUN);
	assert_int_equal(match("GET", "/v1/runs/1234567890123456789012345678901", &route, run), WLBD_MATCH_BAD_RUN);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_false(wlbd_run_name_valid(names[i]));
	assert_true(wlbd_run_name_valid("4294967295.999999"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_matches),
		cmocka_unit_test(test_no_such_path_or_method),
		cmocka_unit_test(test_bad_run),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
