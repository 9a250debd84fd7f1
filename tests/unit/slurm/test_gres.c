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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_gpus_of_every_type),
		cmocka_unit_test(leaves_other_resources_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
