#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/fault_kinds.h"

static void every_kind_has_a_name_of_its_own(void **state)
{
	(void)state;
	for (int kind = 0; kind < WLB_FAULT_KIND_COUNT; kind++) {
		assert_non_null(wlb_faults[kind].name);
		for (int other = 0; other < kind; other++)
			assert_string_not_equal(wlb_faults[kind].name, wlb_faults[other].name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_has_a_name_of_its_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
