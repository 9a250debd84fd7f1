#include "coordinator/wlbd/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/wlbd/log.h"

static void test_defaults(void **state)
{
	struct wlbd_config config;
	struct wlb_error error;
	(void)state;
	assert_int_equal(wlbd_config_parse("f", "", &config, &error), 0);
	assert_string_equal(config.listen_host, "127.0.0.1");
	assert_int_equal(config.listen_port, 8642);
	assert_false(config.private_data);
	assert_true(config.node_down);
	assert_true(config.avoid_nodes);
	assert_int_equal(config.log_level, WLBD_LOG_INFO);
	assert_int_equal(config.restart_grace_ms, 15000);
	assert_int_equal(config.on_fault.hang, WLB_FAULT_EVICT);
	assert_true(config.on_fault.hang_after_s == 8);
}

static void test_every_kind_of_line(void **state)
{
	struct wlbd_config config;
	struct wlb_error error;
	const char *text = "# a comment\n\n  listen=[::1]:0\r\ndatabase = host=/run/pg dbname=wlb\n"
			   "private_data = yes\nnode_down = no\navoid_nodes = no\nlog_level = debug\nsilence_ms = 5000\n"
			   "on_fault = report,crash=evict,hang-after=5m";
	(void)state;
	assert_int_equal(wlbd_config_parse("f", text, &config, &error), 0);
	assert_string_equal(config.listen_host, "::1");
	assert_int_equal(config.listen_port, 0);
	assert_string_equal(config.database, "host=/run/pg dbname=wlb");
	assert_true(config.private_data);
	assert_false(config.node_down);
	assert_false(config.avoid_nodes);
	assert_int_equal(config.log_level, WLBD_LOG_DEBUG);
	assert_int_equal(config.silence_ms, 5000);
	assert_int_equal(config.on_fault.crash, WLB_FAULT_EVICT);
	assert_int_equal(config.on_fault.hang, WLB_FAULT_REPORT);
	assert_true(config.on_fault.hang_after_s == 300);
	assert_true(config.on_fault.slow_by_percent == 10);
}

static void test_refusals_name_file_line_and_value(void **state)
{
	static const struct {
		const char *text;
		const char *parts[3];
	} cases[] = {
		{"\nlisten = nowhere", {"f", "nowhere", "HOST:PORT"}},
		{"listen = ::1:80", {"f", "::1:80", "[::1]:8642"}},
		{"listen = a:70000", {"f", "a:70000", "HOST:PORT"}},
		{"\nprivate_data = maybe", {"f, line 2", "maybe", "yes or no"}},
		{"silence_ms = 1s", {"f, line 1", "1s", "1000"}},
		{"silence_ms = 999", {"f, line 1", "999", "1000"}},
		{"log_level = loud", {"f, line 1", "loud", "warning"}},
		{"on_fault = hang=stop", {"f, line 1", "on_fault", "hang=stop"}},
		{"lisen = a:1", {"f, line 1", "lisen", "listen"}},
		{"listen", {"f, line 1", "listen", "key = value"}},
		{"node_down = no\nnode_down = no", {"f, line 2", "node_down", "twice"}},
	};
	struct wlbd_config config;
	struct wlb_error error;
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(wlbd_config_parse("f", cases[i].text, &config, &error), -1);
		for (int k = 0; k < 3; k++)
			if (strstr(error.message, cases[i].parts[k]) == NULL)
				fail_msg("'%s' is not in: %s", cases[i].parts[k], error.message);
	}
}

static void test_missing_file(void **state)
{
	struct wlbd_config config;
	struct wlb_error error;
	(void)state;
	assert_int_equal(wlbd_config_load("/nonexistent/wlbd.conf", &config, &error), -1);
	assert_non_null(strstr(error.message, "/nonexistent/wlbd.conf"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_every_kind_of_line),
		cmocka_unit_test(test_refusals_name_file_line_and_value),
		cmocka_unit_test(test_missing_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
