#include "coordinator/wlbd/api/calibrations/calibration_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Returns what the check of a calibration on `nodes`, a JSON array, says. */
static int check(const char *nodes, const struct wlb_slurm_job *job, struct wlb_error *error)
{
	struct wlbd_calibration calibration = {.nodes = json_loads(nodes, 0, NULL)};
	assert_non_null(calibration.nodes);
	error->message[0] = '\0';
	int rc = wlbd_calibration_check_job(&calibration, job, error);
	json_decref((json_t *)(uintptr_t)calibration.nodes);
	return rc;
}

static void nodes_are_those_of_the_job(void **state)
{
	const struct wlb_slurm_job job = {.job_id = 7, .running = true, .nodes = "n[2-4,10]"};
	struct wlb_error error;
	(void)state;
	assert_int_equal(check("[\"n10\", \"n2\", \"n3\", \"n4\"]", &job, &error), 0);
	assert_int_equal(check("[\"n3\"]", &job, &error), 0);
	assert_int_equal(check("[\"n3\", \"n1\"]", &job, &error), -1);
	assert_non_null(strstr(error.message, "job 7 has no node n1; it has n[2-4,10]"));
}

static void the_job_runs(void **state)
{
	struct wlb_slurm_job job = {.job_id = 7, .nodes = "n2"};
	struct wlb_error error;
	(void)state;
	assert_int_equal(check("[\"n2\"]", &job, &error), -1);
	assert_non_null(strstr(error.message, "job 7 does not run"));
	job.running = true;
	assert_int_equal(check("[\"n2\"]", &job, &error), 0);
	job.nodes = "";
	assert_int_equal(check("[\"n2\"]", &job, &error), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_are_those_of_the_job),
		cmocka_unit_test(the_job_runs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
