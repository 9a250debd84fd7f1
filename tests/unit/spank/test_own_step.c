/* A step that srun starts with the option, outside of a job that has it. */
#include "spank/own_step.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/spank/fake_spank.h"

static int reset(void **state)
{
	(void)state;
	unsetenv("SLURM_WLB_LAYOUT");
	unsetenv("SLURM_WLB_ATTEMPT_ID");
	unsetenv("SLURM_WLB_OWN_STEP");
	fake_spank_reset();
	return 0;
}

static void a_job_with_the_option_or_an_attempt_has_none(void **state)
{
	(void)state;
	assert_true(wlb_own_step_is_wanted());
	setenv("SLURM_WLB_LAYOUT", "auto", 1);
	assert_false(wlb_own_step_is_wanted());
	unsetenv("SLURM_WLB_LAYOUT");
	setenv("WLB_ATTEMPT_ID", "6e1b0f3c-3c1e-4c39-9ad5-0d6a3d0c1f11", 1);
	assert_false(wlb_own_step_is_wanted());
	unsetenv("WLB_ATTEMPT_ID");
	setenv("SLURM_WLB_ATTEMPT_ID", "6e1b0f3c-3c1e-4c39-9ad5-0d6a3d0c1f11", 1);
	assert_false(wlb_own_step_is_wanted());
}

static void it_gets_an_id_of_its_own(void **state)
{
	struct wlb_error error;
	char first[64];
	(void)state;
	assert_int_equal(wlb_own_step_begin(&error), 0);
	assert_string_equal(getenv("SLURM_WLB_OWN_STEP"), "1");
	assert_int_equal(strlen(getenv("SLURM_WLB_ATTEMPT_ID")), 36);
	snprintf(first, sizeof(first), "%s", getenv("SLURM_WLB_ATTEMPT_ID"));
	assert_int_equal(wlb_own_step_begin(&error), 0);
	assert_string_not_equal(getenv("SLURM_WLB_ATTEMPT_ID"), first);
}

static void what_it_starts_is_none(void **state)
{
	(void)state;
	assert_false(wlb_own_step_take(NULL));
	spank_setenv(NULL, "SLURM_WLB_OWN_STEP", "1", 1);
	spank_setenv(NULL, "WLB_OWN_STEP", "1", 1);
	spank_setenv(NULL, "WLB_ATTEMPT_ID", "x", 1);
	assert_true(wlb_own_step_take(NULL));
	assert_null(fake_spank_env("SLURM_WLB_OWN_STEP"));
	assert_null(fake_spank_env("WLB_OWN_STEP"));
	assert_string_equal(fake_spank_env("WLB_ATTEMPT_ID"), "x");
	assert_false(wlb_own_step_take(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_job_with_the_option_or_an_attempt_has_none, reset),
		cmocka_unit_test_setup(it_gets_an_id_of_its_own, reset),
		cmocka_unit_test_setup(what_it_starts_is_none, reset),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
