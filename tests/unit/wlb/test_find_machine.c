/* Which machine each attempt of a run is planned with, where earlier ones have left their files. */
#include "coordinator/wlb/run/plan/machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/wlb-find-machine-XXXXXX";
static char h100_file[64], types[WLB_RUN_GPU_TYPES_BYTES];
static struct wlb_run run;

static void find(int number, const char *gpu_types)
{
	const struct wlb_attempt attempt = {.number = number};
	snprintf(types, sizeof(types), "%s", gpu_types);
	wlb_run_find_machine(&run, &attempt, types);
}

/* The id of the calibration that the record of the plan names, 0: it names none. */
static int64_t calibration(void)
{
	return json_integer_value(json_object_get(run.calibration, "id"));
}

static void attempts_of_the_same_type_have_the_same_machine(void **state)
{
	(void)state;
	for (int number = 2; number <= 3; number++) {
		find(number, "h100");
		assert_string_equal(getenv("WLB_MACHINE"), h100_file);
		assert_int_equal(calibration(), 3);
	}
}

/* A spare of another type has taken the place of a node. */
static void an_attempt_of_several_types_does_not_take_the_machine_of_the_one_before(void **state)
{
	char expected[128];
	(void)state;
	find(2, "h100");
	find(3, "h100,a100");
	assert_null(getenv("WLB_MACHINE"));
	snprintf(expected, sizeof(expected), "%s,a100", h100_file);
	assert_string_equal(types, expected);
	assert_int_equal(calibration(), 0);
}

static void nor_does_one_of_a_type_that_was_not_measured(void **state)
{
	(void)state;
	find(2, "h100");
	find(3, "a100");
	assert_null(getenv("WLB_MACHINE"));
	assert_int_equal(calibration(), 0);
	find(4, "h100");
	assert_string_equal(getenv("WLB_MACHINE"), h100_file);
	assert_int_equal(calibration(), 3);
}

static void what_the_user_has_named_stays(void **state)
{
	(void)state;
	setenv("WLB_MACHINE", "B200", 1);
	find(2, "h100");
	find(3, "h100,a100");
	assert_string_equal(getenv("WLB_MACHINE"), "B200");
	assert_string_equal(types, "h100,a100");
}

static int begin(void **state)
{
	(void)state;
	run = (struct wlb_run){.id = "7"};
	snprintf(run.job.spool_dir, sizeof(run.job.spool_dir), "%s", dir);
	return unsetenv("WLB_MACHINE");
}

static int end(void **state)
{
	(void)state;
	json_decref(run.calibration);
	return 0;
}

static int make_files(void **state)
{
	(void)state;
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(h100_file, sizeof(h100_file), "%s/machine-7-h100.json", dir);
	FILE *file = fopen(h100_file, "w");
	if (file == NULL)
		return -1;
	fputs("{\"name\": \"H100\", \"calibration\": {\"id\": 3}}", file);
	return fclose(file);
}

static int remove_files(void **state)
{
	(void)state;
	unlink(h100_file);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(attempts_of_the_same_type_have_the_same_machine, begin, end),
		cmocka_unit_test_setup_teardown(an_attempt_of_several_types_does_not_take_the_machine_of_the_one_before,
	                                        begin, end),
		cmocka_unit_test_setup_teardown(nor_does_one_of_a_type_that_was_not_measured, begin, end),
		cmocka_unit_test_setup_teardown(what_the_user_has_named_stays, begin, end),
	};
	return cmocka_run_group_tests(tests, make_files, remove_files);
}
