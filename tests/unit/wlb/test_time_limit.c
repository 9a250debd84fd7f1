#include "coordinator/wlb/run/time_limit.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "common/clock.h"

/* A job that ends in so many seconds by the clock of this host, which is before slurmctld's or behind it; Slurm is not
 * asked soon. */
static struct wlb_run job_with(int64_t left_s, double clock_ahead_s)
{
	return (struct wlb_run){.job = {.end_time = time(NULL) + left_s, .clock_ahead_s = clock_ahead_s},
	                        .limit = {.is_given = true, .given_s = 60, .next_query_ms = wlb_clock_ms() + 3600000}};
}

static void an_end_is_by_the_clock_of_slurmctld(void **state)
{
	static const struct {
		int64_t left_s;
		double clock_ahead_s, really_left_s;
	} cases[] = {{100, 0, 100}, {100, -31, 69}, {100, -300, -200}, {100, 300, 400}};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct wlb_run run = job_with(cases[i].left_s, cases[i].clock_ahead_s);
		assert_float_equal(wlb_run_limit_left_s(&run), cases[i].really_left_s, 5);
	}
	const struct wlb_run unknown = {.job = {.clock_ahead_s = -31}};
	assert_true(isinf(wlb_run_limit_left_s(&unknown)));
}

static void the_command_is_asked_in_time(void **state)
{
	struct wlb_run behind = job_with(100, -50), before = job_with(50, 50), equal = job_with(100, 0);
	(void)state;
	assert_int_equal(wlb_run_limit_check(&behind), WLB_RUN_STOP_LIMIT);
	assert_int_equal(wlb_run_limit_check(&before), WLB_RUN_STOP_NONE);
	assert_int_equal(wlb_run_limit_check(&equal), WLB_RUN_STOP_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_end_is_by_the_clock_of_slurmctld),
		cmocka_unit_test(the_command_is_asked_in_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
