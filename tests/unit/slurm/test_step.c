#include "coordinator/slurm/slurm_api.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/slurm/fake_slurm.h"

enum { SRUN_PID = 4711 };

static char this_host[HOST_NAME_MAX + 1];

/* Adds a step of an srun with this pid. */
static void add_step(uint32_t step_id, uint32_t srun_pid, char *srun_host)
{
	fake_slurm_steps[fake_slurm_step_count++] = (job_step_info_t){
		.step_id = wlb_compat_step(12, step_id), .srun_pid = srun_pid, .srun_host = srun_host};
}

/* Returns the number of the step, or -1. */
static int found_step(void)
{
	uint32_t step_id;
	int found = wlb_slurm_step_of(12, SRUN_PID, &step_id, NULL);
	assert_in_range(found, 0, 1);
	return found ? (int)step_id : -1;
}

static void the_step_of_another_hosts_srun_with_the_same_pid_is_another(void **state)
{
	(void)state;
	add_step(3, SRUN_PID, "another-host");
	assert_int_equal(found_step(), -1);
	add_step(4, SRUN_PID + 1, this_host);
	assert_int_equal(found_step(), -1);
	add_step(5, SRUN_PID, this_host);
	assert_int_equal(found_step(), 5);
}

static void a_step_without_a_host_is_known_by_its_pid(void **state)
{
	(void)state;
	add_step(3, SRUN_PID, NULL);
	assert_int_equal(found_step(), 3);
}

static int begin(void **state)
{
	(void)state;
	fake_slurm_step_count = 0;
	if (gethostname(this_host, sizeof(this_host)) != 0)
		return -1;
	this_host[strcspn(this_host, ".")] = '\0';
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_step_of_another_hosts_srun_with_the_same_pid_is_another, begin),
		cmocka_unit_test_setup(a_step_without_a_host_is_known_by_its_pid, begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
