#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fake_spank.h"
#include "spank/environment.h"

static int forget(void **state)
{
	(void)state;
	fake_spank_reset();
	return 0;
}

static void sets_both_names(void **state)
{
	(void)state;
	wlb_environment_set(NULL, "RUN_ID", "12");
	wlb_environment_set_number(NULL, "RANK_DP", 3);
	assert_string_equal(fake_spank_env("WLB_RUN_ID"), "12");
	assert_string_equal(fake_spank_env("SLURM_WLB_RUN_ID"), "12");
	assert_string_equal(fake_spank_env("WLB_RANK_DP"), "3");
	assert_string_equal(fake_spank_env("SLURM_WLB_RANK_DP"), "3");
}

static void restores_plain_names(void **state)
{
	(void)state;
	for (int i = 0; i < 12; i++) {
		char name[32], value[16];
		snprintf(name, sizeof(name), "SLURM_WLB_V%d", i);
		snprintf(value, sizeof(value), "a=%d", i);
		spank_setenv(NULL, name, value, 1);
	}
	spank_setenv(NULL, "WLB_V3", "stale", 1);
	spank_setenv(NULL, "SLURM_JOB_ID", "7", 1);
	wlb_environment_restore(NULL);
	assert_string_equal(fake_spank_env("WLB_V0"), "a=0");
	assert_string_equal(fake_spank_env("WLB_V3"), "a=3");
	assert_string_equal(fake_spank_env("WLB_V11"), "a=11");
	assert_null(fake_spank_env("JOB_ID"));
}

static void says_when_slurm_sets_nothing(void **state)
{
	(void)state;
	for (int i = 0; fake_spank_logged()[0] == '\0' && i < 100; i++) {
		char name[32];
		snprintf(name, sizeof(name), "V%d", i);
		wlb_environment_set(NULL, name, "1");
	}
	assert_non_null(strstr(fake_spank_logged(), "SLURM_WLB_V32"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(sets_both_names, forget, forget),
		cmocka_unit_test_setup_teardown(restores_plain_names, forget, forget),
		cmocka_unit_test_setup_teardown(says_when_slurm_sets_nothing, forget, forget),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
