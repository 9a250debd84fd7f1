/* Tests arrays that grow, and buffers that are kept from one use to the next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "libwlb/capacity.h"

/* The sanitizer would otherwise end the test where an allocation is too large. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static void what_an_array_held_stays(void **state)
{
	(void)state;
	int32_t *array = NULL;
	size_t capacity = 0;
	for (size_t count = 1; count <= 1000; count++) {
		assert_int_equal(wlb_grow((void **)&array, &capacity, count, sizeof(*array)), 0);
		assert_true(capacity >= count);
		array[count - 1] = (int32_t)count;
	}
	for (int32_t i = 0; i < 1000; i++)
		assert_int_equal(array[i], i + 1);
	free(array);
}

static void an_array_soon_grows_no_more(void **state)
{
	(void)state;
	char *array = NULL;
	size_t capacity = 0;
	int grown = 0;
	for (size_t count = 1; count <= 100000; count++) {
		size_t before = capacity;
		assert_int_equal(wlb_grow((void **)&array, &capacity, count, 1), 0);
		grown += capacity != before;
	}
	assert_in_range(grown, 1, 30);
	assert_int_equal(wlb_grow((void **)&array, &capacity, 0, 1), 0);
	assert_true(capacity >= 100000);
	free(array);
}

static void no_elements_are_an_array_too(void **state)
{
	(void)state;
	void *array = NULL;
	size_t capacity = 0;
	assert_int_equal(wlb_grow(&array, &capacity, 0, 8), 0);
	assert_non_null(array);
	free(array);
}

static void without_memory_all_is_unchanged(void **state)
{
	(void)state;
	int32_t *array = NULL;
	size_t capacity = 0;
	assert_int_equal(wlb_grow((void **)&array, &capacity, 3, sizeof(*array)), 0);
	int32_t *array_before = array;
	size_t capacity_before = capacity;
	array[2] = 7;
	assert_int_equal(wlb_grow((void **)&array, &capacity, SIZE_MAX / 4, sizeof(*array)), -1);
	assert_ptr_equal(array, array_before);
	assert_int_equal(capacity, capacity_before);
	assert_int_equal(array[2], 7);
	free(array);
}

static void a_buffer_is_zeroed_at_each_use(void **state)
{
	(void)state;
	struct wlb_buffer buffer = {0};
	for (size_t count = 0; count < 100; count += 33) {
		int64_t *elements = wlb_buffer_zeroed(&buffer, count, sizeof(*elements));
		assert_non_null(elements);
		for (size_t i = 0; i < count; i++) {
			assert_int_equal(elements[i], 0);
			elements[i] = -1;
		}
	}
	void *before = buffer.memory;
	assert_null(wlb_buffer_zeroed(&buffer, SIZE_MAX / 4, sizeof(int64_t)));
	assert_ptr_equal(buffer.memory, before);
	wlb_buffer_free(&buffer);
	assert_null(buffer.memory);
	assert_int_equal(buffer.capacity, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_an_array_held_stays),       cmocka_unit_test(an_array_soon_grows_no_more),
		cmocka_unit_test(no_elements_are_an_array_too),   cmocka_unit_test(without_memory_all_is_unchanged),
		cmocka_unit_test(a_buffer_is_zeroed_at_each_use),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
