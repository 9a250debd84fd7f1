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

static void test_alias(void **state)
{
	static const char *const good[] = {"15_2",   "15_0", "15_2.2", "15+1",
	                                   "15+0.3", "12",   "12.2",   "4294967295_4294967294.999999"};
	static const char *const bad[] = {"15_",    "15_x", "15_02", "15_2.", "15_2.0",        "15_2_3",
	                                  "15+1+2", "_2",   "+1",    "15-2",  "15_12345678901"};
	static const struct wlbd_route by_alias = {.method = "GET", .pattern = "/v1/runs/*", .takes_alias = true};
	const struct wlbd_route *route;
	char run[WLBD_RUN_NAME_SIZE];
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(wlbd_run_alias_valid(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(wlbd_run_alias_valid(bad[i]));
	assert_int_equal(wlbd_route_match(&by_alias, 1, "GET", "/v1/runs/15_2.2", &route, run), WLBD_MATCH);
	assert_string_equal(run, "15_2.2");
	assert_int_equal(match("GET", "/v1/runs/15_2", &route, run), WLBD_MATCH_BAD_RUN);
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
		cmocka_unit_test(test_alias),
		cmocka_unit_test(test_bad_run),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
