/* The element type in which `wlb run` has nodes checked. */
#include "coordinator/wlb/run/check/machine_dtype.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

/* Names a copy of the machine CPU that was measured, with elements of so many bytes, by WLB_MACHINE. A machine of GPUs
 * has no blocking_messages. */
static void make_machine(int bytes, bool is_measured, bool of_gpus)
{
	static char path[] = "/tmp/test_machine_dtype-XXXXXX.json";
	static int fd;
	json_t *root = json_load_file(WLB_TEST_MACHINES "/CPU.json", 0, NULL);
	assert_non_null(root);
	json_object_set_new(root, "element_bytes", json_integer(bytes));
	if (of_gpus)
		json_object_del(root, "blocking_messages");
	if (is_measured)
		json_object_set_new(root, "gemm",
		                    json_pack("{s:[i,i], s:[i,i], s:[i,i], s:[[[f,f],[f,f]],[[f,f],[f,f]]]}", "rows",
		                              61, 125, "depth", 64, 128, "columns", 64, 128, "flops_per_s", 1e9, 1e9,
		                              1e9, 1e9, 1e9, 1e9, 1e9, 1e9));
	if (fd == 0)
		fd = mkstemps(path, 5);
	assert_int_equal(json_dump_file(root, path, 0), 0);
	setenv("WLB_MACHINE", path, 1);
	json_decref(root);
}

static void test_types(void **state)
{
	(void)state;
	make_machine(4, true, false);
	assert_string_equal(wlb_run_machine_dtype(false), "float32");
	assert_null(wlb_run_machine_dtype(true));
	make_machine(4, true, true);
	assert_string_equal(wlb_run_machine_dtype(true), "float32");
	assert_null(wlb_run_machine_dtype(false));
	make_machine(8, true, false);
	assert_string_equal(wlb_run_machine_dtype(false), "float64");
	make_machine(8, true, true);
	assert_null(wlb_run_machine_dtype(true));
	make_machine(2, true, true);
	assert_string_equal(wlb_run_machine_dtype(true), "bfloat16");
	make_machine(2, true, false);
	assert_null(wlb_run_machine_dtype(false));
	unlink(getenv("WLB_MACHINE"));
	assert_null(wlb_run_machine_dtype(false)); /* the file is not there */
}

static void test_a_machine_that_was_not_measured(void **state)
{
	(void)state;
	make_machine(4, false, false);
	assert_null(wlb_run_machine_dtype(false));
	unlink(getenv("WLB_MACHINE"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_a_machine_that_was_not_measured),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
