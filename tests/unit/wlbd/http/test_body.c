/* How large the values of a body are, and the memory that they lie in. */
#include "coordinator/wlbd/http/body_size.h"

#include <jansson.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/wlbd/http/body_memory.h"

static size_t values(const char *text)
{
	return wlbd_body_size(text, strlen(text)).values;
}

static void counts_no_less_than_there_are(void **state)
{
	(void)state;
	assert_int_equal(values(""), 1);
	assert_int_equal(values("{}"), 2);
	assert_int_equal(values("[1,2,3]"), 4);
	assert_int_equal(values("{\"a\":1,\"b\":[2,3]}"), 7);
}

static void what_is_in_a_text_does_not_count(void **state)
{
	(void)state;
	assert_int_equal(values("\",,,,[[[[\""), 1);
	assert_int_equal(values("\"a\\\",,,\""), 1);
	assert_int_equal(values("\"a\\\\\",1"), 2);
	assert_int_equal(values("\"never closed ,,,\\"), 1);
}

/* A text of an array with that many entries. */
static json_t *parse_entries(struct wlbd_body_memory *memory, size_t first_bytes, int entries)
{
	static char text[1 << 20] = "[0";
	size_t length = 2;
	for (int i = 1; i < entries; i++)
		length += (size_t)sprintf(text + length, ",{\"a\":[\"b\",%d,0.5]}", i);
	text[length++] = ']';
	wlbd_body_memory_begin(memory, first_bytes);
	json_t *body = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
	wlbd_body_memory_end();
	return body;
}

/* Whatever was estimated. What is allocated afterwards is released one by one, as before. */
static void values_lie_in_the_memory_of_the_body(void **state)
{
	static const size_t first_bytes[] = {0, 1000, 1 << 20};
	struct mallinfo2 before = mallinfo2();
	(void)state;
	for (size_t i = 0; i < sizeof(first_bytes) / sizeof(first_bytes[0]); i++) {
		struct wlbd_body_memory memory = {0};
		json_t *body = parse_entries(&memory, first_bytes[i], 1000);
		assert_int_equal(json_array_size(body), 1000);
		const json_t *last = json_object_get(json_array_get(body, 999), "a");
		assert_int_equal(json_integer_value(json_array_get(last, 1)), 999);
		assert_string_equal(json_string_value(json_array_get(last, 0)), "b");
		json_t *other = json_pack("{s:[i]}", "a", 1);
		json_decref(other);
		wlbd_body_memory_free(&memory);
		assert_null(memory.newest);
	}
	assert_true(mallinfo2().uordblks + mallinfo2().hblkhd < before.uordblks + before.hblkhd + 4096);
}

static void a_body_that_is_no_json_leaves_nothing(void **state)
{
	struct wlbd_body_memory memory = {0};
	(void)state;
	wlbd_body_memory_begin(&memory, 100);
	assert_null(json_loads("{\"a\":[1,2,", 0, NULL));
	wlbd_body_memory_end();
	wlbd_body_memory_free(&memory);
}

int main(void)
{
	wlbd_body_memory_open();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_no_less_than_there_are),
		cmocka_unit_test(what_is_in_a_text_does_not_count),
		cmocka_unit_test(values_lie_in_the_memory_of_the_body),
		cmocka_unit_test(a_body_that_is_no_json_leaves_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
