#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/slurm/slurm_api.h"

/* libslurm itself would end the process. */
static void names_an_unreadable_configuration(void **state)
{
	(void)state;
	struct wlb_error error = {""};
	setenv("SLURM_CONF", "/nowhere/slurm.conf", 1);
	assert_int_equal(wlb_slurm_open(&error), -1);
	assert_non_null(strstr(error.message, "SLURM_CONF=/nowhere/slurm.conf"));
	assert_non_null(strstr(error.message, "No such file"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(names_an_unreadable_configuration)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
