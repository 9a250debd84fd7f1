/* The last bytes of an output. */
#include "common/output_tail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct wlb_output_tail tail;
static char copy[WLB_OUTPUT_TAIL_BYTES];

static int begin(void **state)
{
	(void)state;
	memset(&tail, 0, sizeof(tail));
	return 0;
}

static void add(const char *text)
{
	wlb_output_tail_add(&tail, text, strlen(text));
}

static void a_short_output_is_whole(void **state)
{
	(void)state;
	assert_int_equal(wlb_output_tail_copy(&tail, copy, sizeof(copy)), 0);
	add("one\n");
	add("two");
	assert_int_equal(wlb_output_tail_copy(&tail, copy, sizeof(copy)), 7);
	assert_memory_equal(copy, "one\ntwo", 7);
	assert_int_equal(wlb_output_tail_copy(&tail, copy, 5), 3);
	assert_memory_equal(copy, "two", 3);
}

static void of_a_long_one_the_last_lines_are_there(void **state)
{
	(void)state;
	for (int i = 0; i < WLB_OUTPUT_TAIL_BYTES / 16; i++)
		add("a line of some length\n");
	add("the last\n");
	size_t count = wlb_output_tail_copy(&tail, copy, sizeof(copy));
	assert_in_range(count, sizeof(copy) - 22, sizeof(copy) - 1);
	assert_memory_equal(copy, "a line", 6);
	assert_memory_equal(copy + count - 16, "length\nthe last\n", 16);
}

static void a_closed_one_takes_half_of_its_size(void **state)
{
	(void)state;
	add("the cause\n");
	for (int times = 0; times < 3; times++) {
		wlb_output_tail_close(&tail);
		for (int i = 0; i < WLB_OUTPUT_TAIL_BYTES / 32; i++)
			add("a consequence\n");
	}
	assert_int_equal(wlb_output_tail_copy(&tail, copy, sizeof(copy)), 10 + sizeof(copy) / 2);
	assert_memory_equal(copy, "the cause\na conseq", 18);
}

static void a_line_without_an_end(void **state)
{
	static char many[3 * WLB_OUTPUT_TAIL_BYTES];
	(void)state;
	memset(many, 'x', sizeof(many));
	wlb_output_tail_add(&tail, many, sizeof(many));
	assert_int_equal(wlb_output_tail_copy(&tail, copy, sizeof(copy)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_short_output_is_whole, begin),
		cmocka_unit_test_setup(of_a_long_one_the_last_lines_are_there, begin),
		cmocka_unit_test_setup(a_closed_one_takes_half_of_its_size, begin),
		cmocka_unit_test_setup(a_line_without_an_end, begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
