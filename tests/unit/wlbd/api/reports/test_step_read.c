/* Every bound of the steps in a report. */
#include "coordinator/wlbd/api/reports/step_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "coordinator/wlbd/http/fields.h"
#include "tests/unit/wlbd/api/reports/report_entries.h"

#define ENTRY "[3,41,1500000,250000,1000000,0.75,125000,1,2.5,0.5,[[\"tp\",96,500000,65536],[\"pp 0>1\",2,null,0]]]"

static void test_an_entry(void **state)
{
	struct wlbd_rank_step step;
	struct wlb_error error;
	json_t *entry = entry_parse(ENTRY);
	(void)state;
	assert_int_equal(wlbd_step_read(entry, &step, &error), 0);
	assert_int_equal(step.ended.rank, 3);
	assert_int_equal(step.ended.step, 41);
	assert_true(fabs(step.ended.seconds - 1.5) < 1e-9 && fabs(step.ended.aside_s - 0.25) < 1e-9);
	assert_true(fabs(step.ended.computed_s - 1.0) < 1e-9 && step.ended.work == 0.75);
	assert_true(fabs(step.ended.loader_s - 0.125) < 1e-9 && fabs(step.ended.storage_s - 1e-6) < 1e-12);
	assert_true(step.ended.has_loss && step.ended.loss == 2.5 && step.ended.has_gradient_norm &&
	            step.ended.gradient_norm == 0.5);
	assert_int_equal(step.transfer_count, 2);
	assert_string_equal(step.transfers[0].group, "tp");
	assert_int_equal(step.transfers[0].transfer.calls, 96);
	assert_true(fabs(step.transfers[0].transfer.transfer_s - 0.5) < 1e-9 &&
	            step.transfers[0].transfer.bytes == 65536.0);
	assert_true(step.transfers[1].transfer.transfer_s < 0.0);
	json_decref(entry);
}

static void test_what_is_not_known(void **state)
{
	struct wlbd_rank_step step;
	struct wlb_error error;
	json_t *entry = entry_parse("[3,41,null,null,null,null,null,null,null,null,[]]");
	(void)state;
	assert_int_equal(wlbd_step_read(entry, &step, &error), 0);
	assert_true(step.ended.seconds < 0 && step.ended.aside_s < 0 && step.ended.computed_s < 0 &&
	            step.ended.work < 0);
	assert_true(step.ended.loader_s < 0 && step.ended.storage_s < 0);
	assert_true(!step.ended.has_loss && !step.ended.has_gradient_norm && step.transfer_count == 0);
	json_decref(entry);
}

struct bound {
	size_t place;
	const char *value, *word; /* word NULL: accepted; else in the message */
};

static int read_one(const json_t *entry, struct wlb_error *error)
{
	struct wlbd_rank_step step;
	return wlbd_step_read(entry, &step, error);
}

/* Reads the entry with another value at a place. */
static void expect(const struct bound *bound)
{
	char place[16];
	json_t *entry = entry_parse(ENTRY);
	snprintf(place, sizeof(place), "%zu", bound->place);
	json_array_set_new(entry, bound->place, entry_parse(bound->value));
	entry_expect(read_one, entry, place, bound->value, bound->word);
}

static void expect_all(const struct bound *bounds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		expect(&bounds[i]);
}

static void test_bounds_of_values(void **state)
{
	static const struct bound bounds[] = {
		{0, "0", NULL},
		{0, "1048576", NULL},
		{0, "1048577", "rank: 1048577 must be a whole number from 0 to 1048576"},
		{0, "-1", "rank: -1"},
		{0, "1.5", "rank: 1.5"},
		{0, "null", "rank: null"},
		{1, "0", NULL},
		{1, "1000000000000", NULL},
		{1, "1000000000001", "step: 1000000000001"},
		{1, "-1", "step: -1"},
		{1, "null", "step: null"},
		{2, "10000000000000", NULL},
		{2, "10000000000001", "seconds: 10000000000001"},
		{2, "-1", "seconds: -1"},
		{2, "0.5", "seconds: 0.5"},
		{3, "-1", "time aside: -1"},
		{4, "10000000000001", "time computed: 10000000000001"},
		{5, "0", NULL},
		{5, "7", NULL},
		{5, "1e30", NULL},
		{5, "1.1e30", "work: 1.1e30 must be a number from 0 to 1e+30, or null"},
		{5, "-0.5", "work: -0.5"},
		{5, "\"1\"", "work: \"1\""},
		{6, "\"\"", "time of the loader: \"\""},
		{7, "true", "time of storage: true"},
		{8, "-1e100", NULL},
		{8, "3", NULL},
		{8, "\"nan\"", NULL},
		{8, "\"inf\"", NULL},
		{8, "\"-inf\"", NULL},
		{8, "1.1e100",
	         "loss: 1.1e100 must be a number from -1e+100 to 1e+100, \"nan\", \"inf\", \"-inf\", or null"},
		{8, "\"NaN\"", "loss: \"NaN\""},
		{8, "[]", "loss: []"},
		{9, "0", NULL},
		{9, "\"nan\"", NULL},
		{9, "\"inf\"", NULL},
		{9, "-0.5", "gradient norm: -0.5 must be a number from 0 to 1e+100, \"nan\", \"inf\", or null"},
		{9, "\"-inf\"", "gradient norm: \"-inf\""},
		{10, "null", "transfers: null"},
		{10, "{}", "transfers: {} must be an array of at most 16 entries"},
	};
	(void)state;
	expect_all(bounds, sizeof(bounds) / sizeof(bounds[0]));
}

static void test_bounds_of_transfers(void **state)
{
	static const struct bound bounds[] = {
		{10, "[[\"fifteen_letters\",1000000000000000,10000000000000,1000000000000000000]]", NULL},
		{10, "[[\"sixteen_letters_\",1,0,0]]", "transfers[0]: group: \"sixteen_letters_\" must be 1 to 15"},
		{10, "[[\"a\",1,0,0],[\"\",1,0,0]]", "transfers[1]: group: \"\""},
		{10, "[[\"a\\u001b[2J\",1,0,0]]", "transfers[0]: group: \"a\\u001B[2J\""},
		{10, "[[7,1,0,0]]", "transfers[0]: group: 7"},
		{10, "[[\"a\",-1,0,0]]", "transfers[0]: calls: -1"},
		{10, "[[\"a\",1000000000000001,0,0]]", "transfers[0]: calls: 1000000000000001"},
		{10, "[[\"a\",1,-1,0]]", "transfers[0]: time: -1"},
		{10, "[[\"a\",1,10000000000001,0]]", "transfers[0]: time: 10000000000001"},
		{10, "[[\"a\",1,1,-1]]", "transfers[0]: bytes: -1"},
		{10, "[[\"a\",1,1,1000000000000000001]]", "transfers[0]: bytes: 1000000000000000001"},
		{10, "[[\"a\",1,1,null]]", "transfers[0]: bytes: null"},
		{10, "[[\"a\",1,1]]", "transfers[0]: transfer: [\"a\",1,1] must be an array of group"},
		{10, "[[\"a\",1,1,1,1]]", "transfers[0]: transfer"},
		{10, "[{}]", "transfers[0]: transfer: {}"},
	};
	(void)state;
	expect_all(bounds, sizeof(bounds) / sizeof(bounds[0]));
}

static void test_number_of_transfers(void **state)
{
	(void)state;
	for (int count = WLBD_ACTIVITY_GROUPS_MAX; count <= WLBD_ACTIVITY_GROUPS_MAX + 1; count++) {
		char text[512];
		entry_write_groups(text, sizeof(text), count, "2,3,3");
		expect(&(struct bound){10, text, count == WLBD_ACTIVITY_GROUPS_MAX ? NULL : "transfers: "});
	}
}

static int check(json_t *list, struct wlb_error *error)
{
	return entries_check(wlbd_steps_check, "steps", list, error);
}

static json_t *entry_of(int rank, int step)
{
	json_t *entry = entry_parse(ENTRY);
	json_array_set_new(entry, 0, json_integer(rank));
	json_array_set_new(entry, 1, json_integer(step));
	return entry;
}

static void test_the_list(void **state)
{
	struct wlb_error error = {0};
	(void)state;
	assert_int_equal(check(json_null(), &error), 0);
	assert_int_equal(check(json_array(), &error), 0);
	assert_int_equal(check(json_object(), &error), -1);
	assert_non_null(strstr(error.message, "'steps'"));
	assert_int_equal(check(json_pack("[o, o, o]", entry_of(7, 2), entry_of(3, 2), entry_of(7, 1)), &error), 0);
	assert_int_equal(check(json_pack("[o, o, o]", entry_of(7, 2), entry_of(3, 2), entry_of(7, 2)), &error), -1);
	assert_string_equal(error.message,
	                    "field 'steps': step 2 of rank 7 is listed twice; list each step of a rank once");
	assert_int_equal(check(json_pack("[o, i]", entry_of(7, 1), 3), &error), -1);
	assert_string_equal(error.message, "steps[1]: entry: 3 must be an array of 11 values");
	assert_int_equal(check(json_pack("[o, o]", entry_of(7, 1), entry_of(-1, 1)), &error), -1);
	assert_non_null(strstr(error.message, "steps[1]: rank: -1"));
}

static json_t *entry_of_step(int step)
{
	return entry_of(0, step);
}

static void test_length_of_the_list(void **state)
{
	(void)state;
	entries_expect_most(wlbd_steps_check, "steps", entry_of_step, WLBD_STEPS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_entry),
		cmocka_unit_test(test_what_is_not_known),
		cmocka_unit_test(test_bounds_of_values),
		cmocka_unit_test(test_bounds_of_transfers),
		cmocka_unit_test(test_number_of_transfers),
		cmocka_unit_test(test_the_list),
		cmocka_unit_test(test_length_of_the_list),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
