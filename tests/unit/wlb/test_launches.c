/* Which `wlb run` of a job this is, also where Slurm does not say when the job was submitted. */
#include "coordinator/wlb/run/job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/wlb-launches-XXXXXX";
static char path[64];

static int launch_of(int64_t submit_time, uint32_t restart_count)
{
	struct wlb_run_job job = {.job_id = 12, .submit_time = submit_time, .restart_count = restart_count};
	struct wlb_error error;
	int launch;
	snprintf(job.spool_dir, sizeof(job.spool_dir), "%s", dir);
	assert_int_equal(wlb_run_job_launch(&job, &launch, &error), 0);
	return launch;
}

static void launches_of_one_start_are_counted(void **state)
{
	(void)state;
	assert_int_equal(launch_of(1000, 0), 1);
	assert_int_equal(launch_of(1000, 0), 2);
	assert_int_equal(launch_of(2000, 1), 1); /* requeued */
	assert_int_equal(launch_of(2000, 1), 2);
	assert_int_equal(launch_of(3000, 0), 1); /* another job of the same id */
}

/* slurmctld and wlbd are often on one host: without a count the second run would be recorded as the first. */
static void an_unknown_time_of_submission_is_of_the_same_job(void **state)
{
	(void)state;
	assert_int_equal(launch_of(4000, 0), 1);
	assert_int_equal(launch_of(0, 0), 2);
	assert_int_equal(launch_of(4000, 0), 3);
	assert_int_equal(launch_of(0, 0), 4);
	assert_int_equal(launch_of(4500, 0), 1); /* of another job: the time that was known is kept */
	assert_int_equal(launch_of(0, 1), 1);
	assert_int_equal(launch_of(5000, 1), 2);
	assert_int_equal(launch_of(6000, 1), 1); /* the time is known by now */
}

static int make_dir(void **state)
{
	(void)state;
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(path, sizeof(path), "%s/12.launches", dir);
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(launches_of_one_start_are_counted),
		cmocka_unit_test(an_unknown_time_of_submission_is_of_the_same_job),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
