/* Checksums of elements: those that docs/checkpoint-format.md defines, as Python computes them there, and sums of
 * parts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/element_checksum.h"

static const uint32_t values[] = {0x3f800000, 0, 0xffffffff, 7, 0x80000000};
enum { COUNT = sizeof(values) / sizeof(values[0]) };

static void it_is_as_the_format_defines_it(void **state)
{
	assert_true(wlb_element_checksum(values, 4, 0, COUNT) == UINT64_C(0xa38cfe64e6286798));
	assert_true(wlb_element_checksum(values, 4, 1000, COUNT) == UINT64_C(0xda8022563f3987c5));
	assert_true(wlb_element_checksum(values, 4, 0, 0) == 0);
	(void)state;
}

static void elements_of_any_size_are_extended_by_zeros(void **state)
{
	static const uint8_t bytes[] = {1, 2, 3};
	static const uint16_t shorts[] = {1, 2, 3};
	static const uint64_t longs[] = {1, 2, 3};
	const uint64_t expected = UINT64_C(0xa130bb85a824063c);
	assert_true(wlb_element_checksum(bytes, 1, 0, 3) == expected);
	assert_true(wlb_element_checksum(shorts, 2, 0, 3) == expected);
	assert_true(wlb_element_checksum(longs, 8, 0, 3) == expected);
	(void)state;
}

static void checksums_of_parts_add_up(void **state)
{
	uint64_t whole = wlb_element_checksum(values, 4, 0, COUNT);
	for (int cut = 0; cut <= COUNT; cut++)
		assert_true(wlb_element_checksum(values, 4, 0, cut) +
		                    wlb_element_checksum(values + cut, 4, cut, COUNT - cut) ==
		            whole);
	(void)state;
}

/* Each bit, and two elements that have changed places. */
static void any_change_is_found(void **state)
{
	uint64_t whole = wlb_element_checksum(values, 4, 0, COUNT);
	for (int bit = 0; bit < 32 * COUNT; bit++) {
		uint32_t changed[COUNT];
		memcpy(changed, values, sizeof(values));
		changed[bit / 32] ^= UINT32_C(1) << bit % 32;
		assert_true(wlb_element_checksum(changed, 4, 0, COUNT) != whole);
	}
	const uint32_t exchanged[] = {values[1], values[0], values[2], values[3], values[4]};
	assert_true(wlb_element_checksum(exchanged, 4, 0, COUNT) != whole);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_as_the_format_defines_it),
		cmocka_unit_test(elements_of_any_size_are_extended_by_zeros),
		cmocka_unit_test(checksums_of_parts_add_up),
		cmocka_unit_test(any_change_is_found),
	};
	return cmocka_run_group_tests_name("element_checksum", tests, NULL, NULL);
}
