/* Segments are cut into groups that share no key: the threads of attention's backward pass rely on it. */
#include "tests/unit/kernels/support.h"

#include "kernels/cpu/cpu.h"

enum { MOST = 6 };

static void check_groups(const struct wlb_segment *segments, int count, const int32_t *want, int groups)
{
	int32_t starts[MOST + 1];
	assert_int_equal(wlb_cpu_key_groups(starts, segments, count), groups);
	for (int i = 0; i <= groups; i++)
		assert_int_equal(starts[i], want[i]);
}

static void test_documents(void **state)
{
	(void)state;
	const struct wlb_segment s[] = {{0, 3, 0, 3, 0}, {3, 4, 3, 4, 0}, {7, 1, 7, 1, 0}};
	check_groups(s, 3, (const int32_t[]){0, 1, 2, 3}, 3);
	check_groups(s, 0, (const int32_t[]){0}, 0);
}

static void test_shared(void **state)
{
	(void)state;
	const struct wlb_segment s[] = {{0, 3, 0, 3, 0}, {3, 3, 0, 9, 6}, {6, 2, 9, 2, 0}, {8, 1, 10, 1, 0}};
	check_groups(s, 4, (const int32_t[]){0, 2, 4}, 2);
}

/* The third shares with the first, over the head of the second. */
static void test_out_of_order(void **state)
{
	(void)state;
	const struct wlb_segment s[] = {{0, 9, 0, 9, 0}, {9, 9, 10, 9, 0}, {18, 3, 5, 3, 0}, {21, 2, 19, 2, 0}};
	check_groups(s, 4, (const int32_t[]){0, 3, 4}, 2);
}

/* A segment without keys shares nothing, wherever it says that it begins. */
static void test_no_keys(void **state)
{
	(void)state;
	const struct wlb_segment s[] = {{0, 9, 0, 9, 0}, {9, 9, 3, 0, 0}, {18, 3, 9, 3, 0}};
	int32_t starts[MOST + 1];
	int groups = wlb_cpu_key_groups(starts, s, 3);
	assert_true(groups >= 2);
	assert_int_equal(starts[groups - 1], 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_documents), cmocka_unit_test(test_shared),
	                                   cmocka_unit_test(test_out_of_order), cmocka_unit_test(test_no_keys)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
