#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fake_spank.h"
#include "spank/args.h"

static void has_defaults(void **state)
{
	(void)state;
	struct wlb_spank_args args;
	wlb_spank_args_parse(0, NULL, &args);
	assert_string_equal(args.coordinator, "");
	assert_string_equal(args.client.coordinators[0].host, "");
	assert_int_equal(args.timeout_ms, 200);
	assert_int_equal(args.agent_timeout_ms, 200);
	assert_true(args.announce);
	assert_true(args.end_stuck_stepd);
	assert_string_equal(args.agent, WLB_AGENT_PATH);
	assert_string_equal(args.state_dir, "/run/wlb");
	assert_int_equal(args.wlb[0], '/');
	fake_spank_reset();
	wlb_spank_args_report(&args);
	assert_string_equal(fake_spank_logged(), "");
}

static void reads_each_argument(void **state)
{
	(void)state;
	char *argv[] = {"coordinator=[fd00::1]:8642",
	                "munge_socket=/run/m.sock",
	                "timeout_ms=50",
	                "announce=no",
	                "coordinator_user=slurm",
	                "agent=/opt/wlb/wlb-agent",
	                "state_dir=/var/lib/wlb",
	                "wlb=/opt/wlb/bin/wlb",
	                "end_stuck_stepd=no"};
	struct wlb_spank_args args;
	wlb_spank_args_parse(9, argv, &args);
	assert_string_equal(args.agent, "/opt/wlb/wlb-agent");
	assert_string_equal(args.unusable.message, "");
	assert_string_equal(args.coordinator, "[fd00::1]:8642");
	assert_string_equal(args.client.coordinators[0].host, "fd00::1");
	assert_string_equal(args.client.coordinators[0].port, "8642");
	assert_string_equal(args.client.munge_socket, "/run/m.sock");
	assert_int_equal(args.timeout_ms, 50);
	assert_string_equal(args.client.coordinator_user, "slurm");
	assert_string_equal(args.state_dir, "/var/lib/wlb");
	assert_string_equal(args.wlb, "/opt/wlb/bin/wlb");
	assert_false(args.announce);
	assert_false(args.end_stuck_stepd);
}

static void an_agent_has_a_time_of_its_own(void **state)
{
	(void)state;
	char *argv[] = {"agent_timeout_ms=5000", "timeout_ms=50"};
	struct wlb_spank_args args;
	wlb_spank_args_parse(2, argv, &args);
	assert_int_equal(args.agent_timeout_ms, 5000);
	assert_int_equal(args.timeout_ms, 50);
	/* Before it had one, the same argument was for both. */
	wlb_spank_args_parse(1, argv + 1, &args);
	assert_int_equal(args.agent_timeout_ms, 50);
}

static void names_what_it_cannot_use_and_keeps_the_default(void **state)
{
	(void)state;
	static char *const bad[] = {"coordinator=login1", "munge_socket=m.sock",
	                            "timeout_ms=201",     "timeout_ms=0",
	                            "timeout_ms=",        "announce=maybe",
	                            "colour=red",         "coordinator_user=",
	                            "state_dir=run",      "wlb=wlb",
	                            "end_stuck_stepd=1",  "agent_timeout_ms=5001",
	                            "agent_timeout_ms=1s"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char *argv[] = {bad[i]};
		struct wlb_spank_args args;
		wlb_spank_args_parse(1, argv, &args);
		fake_spank_reset();
		wlb_spank_args_report(&args);
		assert_non_null(strstr(fake_spank_logged(), bad[i]));
		assert_null(strchr(fake_spank_logged(), '\n'));
		assert_string_equal(args.coordinator, "");
		assert_string_equal(args.client.munge_socket, "");
		assert_int_equal(args.timeout_ms, 200);
		assert_int_equal(args.agent_timeout_ms, 200);
		assert_true(args.announce);
	}
}

static void starts_no_agent_where_none_is_wanted(void **state)
{
	(void)state;
	char *argv[] = {"agent=no"};
	struct wlb_spank_args args;
	wlb_spank_args_parse(1, argv, &args);
	assert_string_equal(args.agent, "");
	assert_string_equal(args.unusable.message, "");
}

static void uses_the_rest_when_one_is_unusable(void **state)
{
	(void)state;
	char *argv[] = {"colour=red", "coordinator=login1:8642,login2:8642", "timeout_ms=x"};
	struct wlb_spank_args args;
	wlb_spank_args_parse(3, argv, &args);
	assert_string_equal(args.client.coordinators[0].host, "login1");
	assert_string_equal(args.client.coordinators[1].host, "login2");
	assert_non_null(strstr(args.unusable.message, "colour=red"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(has_defaults),
		cmocka_unit_test(reads_each_argument),
		cmocka_unit_test(an_agent_has_a_time_of_its_own),
		cmocka_unit_test(names_what_it_cannot_use_and_keeps_the_default),
		cmocka_unit_test(starts_no_agent_where_none_is_wanted),
		cmocka_unit_test(uses_the_rest_when_one_is_unusable),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
