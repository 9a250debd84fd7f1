#include "coordinator/wlbd/jobs/ended_jobs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { JOB = 12, ENDED_AT = 1790000000, BACK_S = 3500 };

static int begin(void **state)
{
	*state = wlbd_ended_jobs_new();
	return *state != NULL ? 0 : -1;
}

static int end(void **state)
{
	wlbd_ended_jobs_free(*state);
	return 0;
}

static void the_clocks_say_when_it_ended(void **state)
{
	assert_int_equal(wlbd_ended_jobs_ago_s(*state, JOB, ENDED_AT, 5000, ENDED_AT + 60.0), 60);
	assert_int_equal(wlbd_ended_jobs_ago_s(*state, JOB, ENDED_AT, 7000, ENDED_AT + 62.0), 62);
}

/* This host's clock is behind slurmctld's. */
static void a_clock_that_was_set_back_does_not(void **state)
{
	static const int passed_s[] = {0, 1, 19, 20, 580};
	for (int i = 0; i < 5; i++)
		assert_int_equal(wlbd_ended_jobs_ago_s(*state, JOB, ENDED_AT, 5000 + 1000 * passed_s[i],
		                                       (double)ENDED_AT - BACK_S + passed_s[i]),
		                 passed_s[i]);
}

static void another_job_ended_at_another_time(void **state)
{
	wlbd_ended_jobs_ago_s(*state, JOB, ENDED_AT, 5000, (double)ENDED_AT - BACK_S);
	assert_int_equal(wlbd_ended_jobs_ago_s(*state, JOB + 1, ENDED_AT, 25000, (double)ENDED_AT - BACK_S), 0);
	assert_int_equal(wlbd_ended_jobs_ago_s(*state, JOB, ENDED_AT, 25000, (double)ENDED_AT - BACK_S), 20);
}

static void so_did_a_job_that_was_requeued(void **state)
{
	wlbd_ended_jobs_ago_s(*state, JOB, ENDED_AT, 5000, (double)ENDED_AT - BACK_S);
	assert_int_equal(wlbd_ended_jobs_ago_s(*state, JOB, ENDED_AT + 15, 25000, (double)ENDED_AT - BACK_S), 0);
}

static void one_that_is_no_more_asked_for_is_forgotten(void **state)
{
	wlbd_ended_jobs_ago_s(*state, JOB, ENDED_AT, 5000, (double)ENDED_AT - BACK_S);
	wlbd_ended_jobs_ago_s(*state, JOB + 1, ENDED_AT, 700000, (double)ENDED_AT - BACK_S);
	assert_int_equal(wlbd_ended_jobs_ago_s(*state, JOB, ENDED_AT, 700000, (double)ENDED_AT - BACK_S), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_clocks_say_when_it_ended, begin, end),
		cmocka_unit_test_setup_teardown(a_clock_that_was_set_back_does_not, begin, end),
		cmocka_unit_test_setup_teardown(another_job_ended_at_another_time, begin, end),
		cmocka_unit_test_setup_teardown(so_did_a_job_that_was_requeued, begin, end),
		cmocka_unit_test_setup_teardown(one_that_is_no_more_asked_for_is_forgotten, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
