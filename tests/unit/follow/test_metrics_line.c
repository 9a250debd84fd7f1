/* Lines of WLB_METRICS_FILE: what is read of them, and what is refused. */
#include "follow/metrics_line.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct wlb_metrics_line line;
static struct wlb_error error;

static int read_line(const char *text)
{
	return wlb_metrics_line_read(&line, text, strlen(text), &error);
}

static void assert_value(const char *name, double expected)
{
	const double *value = wlb_followed_find(&line.record, name);
	assert_non_null(value);
	if (isnan(expected))
		assert_true(isnan(*value));
	else
		assert_true(*value == expected);
}

static void a_record_has_step_time_and_values(void **state)
{
	(void)state;
	assert_int_equal(read_line("{\"step\": 12, \"time\": 1790000000.5, \"loss\": 2.25, \"tokens\": 4096, "
	                           "\"learning_rate\": 1e-4, \"eval/loss\": 2.5, \"is_best\": true}"),
	                 1);
	assert_int_equal(line.record.step_kind, WLB_FOLLOWED_STEP);
	assert_int_equal(line.record.step, 12);
	assert_true(line.record.time_s == 1790000000.5);
	assert_int_equal(line.record.count, 5);
	assert_value("loss", 2.25);
	assert_value("tokens", 4096);
	assert_value("lr", 1e-4);
	assert_value("eval/loss", 2.5);
	assert_value("is_best", 1);
	assert_string_equal(line.checkpoint, "");
	assert_int_equal(line.rank, -1);
	assert_int_equal(read_line("{\"rank\": 7}"), 1);
	assert_int_equal(line.rank, 7);
	assert_int_equal(line.record.count, 0);
	assert_int_equal(read_line("{\"rank\": -7}"), 1);
	assert_int_equal(line.rank, -1);
}

static void a_step_of_the_attempt_is_no_step(void **state)
{
	(void)state;
	assert_int_equal(read_line("{\"step_of_attempt\": 3}"), 1);
	assert_int_equal(line.record.step_kind, WLB_FOLLOWED_STEP_OF_ATTEMPT);
	assert_int_equal(line.record.step, 3);
	assert_int_equal(read_line("{\"step\": 40, \"step_of_attempt\": 3}"), 1);
	assert_int_equal(line.record.step_kind, WLB_FOLLOWED_STEP);
	assert_int_equal(line.record.step, 40);
	assert_int_equal(read_line("{\"loss\": 3}"), 1);
	assert_int_equal(line.record.step_kind, WLB_FOLLOWED_NO_STEP);
	static const char *const none[] = {"-1", "1e13", "NaN", "\"7\"", "null", "[7]"};
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		char text[64];
		snprintf(text, sizeof(text), "{\"step\": %s, \"loss\": 3}", none[i]);
		assert_int_equal(read_line(text), 1);
		assert_int_equal(line.record.step_kind, WLB_FOLLOWED_NO_STEP);
	}
}

static void numbers_that_json_lacks_are_read(void **state)
{
	(void)state;
	assert_int_equal(read_line("{\"loss\": NaN, \"a\":Infinity,\"b\":-Infinity}"), 1);
	assert_value("loss", NAN);
	assert_value("a", INFINITY);
	assert_value("b", -INFINITY);
	assert_int_equal(read_line("{\"NaN, x\": 1, \"\\\"NaN\": 2}"), 1);
	assert_value("NaN, x", 1);
	assert_value("\"NaN", 2);
	assert_int_equal(read_line("{\"loss\": NaNa}"), -1);
}

static void a_checkpoint_has_its_path(void **state)
{
	(void)state;
	assert_int_equal(read_line("{\"step\": 7, \"checkpoint\": \"/scratch/\\u00e4\"}"), 1);
	assert_string_equal(line.checkpoint, "/scratch/\xc3\xa4");
	assert_int_equal(line.record.step, 7);
}

static void what_is_no_number_is_left_out(void **state)
{
	(void)state;
	assert_int_equal(read_line("{\"loss\": 1, \"note\": \"x\", \"list\": [1, 2], \"more\": {}, \"none\": null}"),
	                 1);
	assert_int_equal(line.record.count, 1);
	assert_int_equal(line.record.left_out, 3);
}

static void names_are_cleaned_and_bounded(void **state)
{
	(void)state;
	assert_int_equal(
		read_line("{\"\\u001b[31mred\\u001b[0m\": 1, \"\\u001b]0;title\\u0007b\": 2, \"\\u001b[2J\": 3, "
	                  "\" a\\nb \": 4}"),
		1);
	assert_int_equal(line.record.count, 3);
	assert_int_equal(line.record.left_out, 1);
	assert_value("red", 1);
	assert_value("b", 2);
	assert_value("a b", 4);
	char text[400] = "{\"";
	memset(text + 2, 'n', 300);
	strcpy(text + 302, "\": 5}");
	assert_int_equal(read_line(text), 1);
	assert_int_equal(strlen(line.record.values[0].name), WLB_VALUE_NAME_SIZE - 1);
}

static void more_names_than_have_room_are_counted(void **state)
{
	enum { NAMES = 5000 };
	char *text = malloc(NAMES * 16), *end = text;
	(void)state;
	assert_non_null(text);
	for (int i = 0; i < NAMES; i++)
		end += sprintf(end, "%c\"n%d\":%d", i == 0 ? '{' : ',', i, i);
	strcpy(end, "}");
	assert_int_equal(read_line(text), 1);
	assert_int_equal(line.record.count, WLB_FOLLOWED_VALUES_MOST);
	assert_int_equal(line.record.left_out, NAMES - WLB_FOLLOWED_VALUES_MOST);
	free(text);
}

static void lines_that_are_no_record_are_refused(void **state)
{
	static const char *const bad[] = {"{", "loss=1", "[1]", "{\"loss\": 1} x", "{\"loss\": 1e999}"};
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		error.message[0] = '\0';
		assert_int_equal(read_line(bad[i]), -1);
		assert_non_null(strstr(error.message, "WLB_METRICS_FILE"));
	}
	assert_int_equal(wlb_metrics_line_read(&line, "{}\0x", 4, &error), -1);
	assert_int_equal(read_line(""), 0);
	assert_int_equal(read_line(" \t\r"), 0);
	assert_int_equal(read_line("{\"a\xff\": 1}\r"), 1);
	assert_value("a" WLB_TEXT_REPLACEMENT, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_has_step_time_and_values),
		cmocka_unit_test(a_step_of_the_attempt_is_no_step),
		cmocka_unit_test(numbers_that_json_lacks_are_read),
		cmocka_unit_test(a_checkpoint_has_its_path),
		cmocka_unit_test(what_is_no_number_is_left_out),
		cmocka_unit_test(names_are_cleaned_and_bounded),
		cmocka_unit_test(more_names_than_have_room_are_counted),
		cmocka_unit_test(lines_that_are_no_record_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
