#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator/slurm/gres.h"

static void counts_gpus_of_every_type(void **state)
{
	(void)state;
	assert_int_equal(wlb_gres_gpus(""), 0);
	assert_int_equal(wlb_gres_gpus("gpu"), 1);
	assert_int_equal(wlb_gres_gpus("gpu:4"), 4);
	assert_int_equal(wlb_gres_gpus("gpu:a100"), 1);
	assert_int_equal(wlb_gres_gpus("gpu:a100:4(S:0-1),gpu:2,shard:8"), 6);
	assert_int_equal(wlb_gres_gpus("gpu:h200:8(S:0,1)"), 8);
}

static void leaves_other_resources_out(void **state)
{
	(void)state;
	assert_int_equal(wlb_gres_gpus("shard:8,nic:2"), 0);
	assert_int_equal(wlb_gres_gpus("gpux:3,nic:gpu:2"), 0);
	assert_int_equal(wlb_gres_gpus("nic:2(S:0,1),gpu:1"), 1);
}

static void assert_type(const char *gres, const char *expected)
{
	char type[16];
	wlb_gres_gpu_type(gres, type, sizeof(type));
	assert_string_equal(type, expected);
}

static void finds_the_type(void **state)
{
	(void)state;
	assert_type("", "");
	assert_type("gpu:4", "");
	assert_type("gpu:a100", "a100");
	assert_type("shard:8,gpu:2,gpu:h200:8(S:0,1)", "h200");
	assert_type("nic:2(S:0,1),gpu:nvidia_h100_80gb_hbm3:8", "nvidia_h100_80g");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_gpus_of_every_type),
		cmocka_unit_test(leaves_other_resources_out),
		cmocka_unit_test(finds_the_type),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
