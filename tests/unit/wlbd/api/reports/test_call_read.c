/* Every bound of the calls in a report. */
#include "coordinator/wlbd/api/reports/call_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

static json_t *parse(const char *text)
{
	json_t *value = json_loads(text, 0, NULL);
	assert_non_null(value);
	return value;
}

static void test_an_entry(void **state)
{
	struct wlbd_rank_call call;
	struct wlb_error error;
	json_t *entry = parse("[3,\"pp 0>1\",1234,65536,5000000,5000001,5250000]");
	(void)state;
	assert_int_equal(wlbd_call_read(entry, &call, &error), 0);
	assert_int_equal(call.rank, 3);
	assert_string_equal(call.group, "pp 0>1");
	assert_int_equal(call.seq, 1234);
	assert_int_equal(call.bytes, 65536);
	assert_true(fabs(call.entered_s - 5.0) < 1e-9 && fabs(call.blocked_s - 5.000001) < 1e-9);
	assert_true(fabs(call.left_s - 5.25) < 1e-9);
	json_decref(entry);
}

static void test_bounds(void **state)
{
	static const struct {
		const char *entry, *message;
	} wrong[] = {
		{"{}", "calls[1]: entry: {} must be an array of 7 values"},
		{"[3,\"tp\",1,1,1,1]", "calls[1]: entry: [3,\"tp\",1,1,1,1] must be an array of 7 values"},
		{"[-1,\"tp\",1,1,1,1,1]", "calls[1]: rank: -1 must be a whole number from 0 to"},
		{"[3,\"\",1,1,1,1,1]", "calls[1]: group: \"\" must be 1 to 15 printable characters"},
		{"[3,\"tp\",1.5,1,1,1,1]", "calls[1]: seq: 1.5 must be a whole number from 0 to"},
		{"[3,\"tp\",1,-1,1,1,1]", "calls[1]: bytes: -1 must be a whole number from 0 to"},
		{"[3,\"tp\",1,1,-1,1,1]", "calls[1]: time entered: -1 must be a whole number from 0 to"},
		{"[3,\"tp\",1,1,5,4,6]", "calls[1]: time blocked: 4 must be a whole number from 5 to"},
		{"[3,\"tp\",1,1,5,7,6]", "calls[1]: time left: 6 must be a whole number from 7 to"},
		{"[3,\"tp\",1,1,5,7,1000000000000001]", "calls[1]: time left: 1000000000000001 must be"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char text[256];
		struct wlb_error error;
		const json_t *calls = NULL;
		snprintf(text, sizeof(text), "{\"calls\":[[3,\"tp\",1,1,1,1,1],%s]}", wrong[i].entry);
		json_t *body = parse(text);
		assert_int_equal(wlbd_calls_check(body, &calls, &error), -1);
		if (strstr(error.message, wrong[i].message) == NULL)
			fail_msg("%s: %s", wrong[i].entry, error.message);
		json_decref(body);
	}
}

static void test_the_list(void **state)
{
	struct wlb_error error;
	const json_t *calls = NULL;
	json_t *none = parse("{}"), *body = json_object(), *list = json_array();
	(void)state;
	assert_int_equal(wlbd_calls_check(none, &calls, &error), 0);
	assert_null(calls);
	for (int i = 0; i < WLBD_CALLS_MAX; i++)
		json_array_append_new(list, parse("[3,\"tp\",1,1,1,1,1]"));
	json_object_set(body, "calls", list);
	assert_int_equal(wlbd_calls_check(body, &calls, &error), 0);
	assert_int_equal(json_array_size(calls), WLBD_CALLS_MAX);
	json_array_append_new(list, parse("[3,\"tp\",1,1,1,1,1]"));
	assert_int_equal(wlbd_calls_check(body, &calls, &error), -1);
	json_decref(list);
	json_decref(body);
	json_decref(none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_entry),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_the_list),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
