/* The name that a mistyped word stands for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/nearest.h"

static void expect(const char *word, const char *expected)
{
	static const char *const names[] = {"run",    "runs", "show",        "steps",
	                                    "stacks", "set",  "check-links", "check-node"};
	struct wlb_nearest nearest = {.word = word};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		wlb_nearest_consider(&nearest, names[i]);
	if (expected == NULL)
		assert_null(nearest.name);
	else
		assert_string_equal(nearest.name, expected);
}

static void each_kind_of_mistake_counts_as_one(void **state)
{
	(void)state;
	expect("rnu", "run");  /* exchanged */
	expect("shw", "show"); /* left out */
	expect("shoow", "show");
	expect("shiw", "show"); /* replaced */
	expect("stesp", "steps");
	expect("check-ndoe", "check-node");
	expect("chek-lniks", "check-links"); /* two */
}

static void the_nearest_is_taken_and_of_equals_one_as_long(void **state)
{
	(void)state;
	expect("runs", "runs");
	expect("rusn", "runs");
	expect("runz", "runs");
	expect("srun", "run");
	expect("ste", "set");
}

static void what_is_too_far_is_near_nothing(void **state)
{
	(void)state;
	expect("", NULL);
	expect("x", NULL);
	expect("bogus", NULL);
	expect("swoh", NULL);
	expect("wohs", NULL);
	expect("abcdefghijklmnopqrstuvwxyzabcdefgh", NULL);
	struct wlb_nearest nearest = {.word = "abcdefghijklmnopqrstuvwxyzabcdef"};
	wlb_nearest_consider(&nearest, "abcdefghijklmnopqrstuvwxyzabcdefg");
	assert_null(nearest.name);
	wlb_nearest_consider(&nearest, "bcdefghijklmnopqrstuvwxyzabcdef");
	assert_non_null(nearest.name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_of_mistake_counts_as_one),
		cmocka_unit_test(the_nearest_is_taken_and_of_equals_one_as_long),
		cmocka_unit_test(what_is_too_far_is_near_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
