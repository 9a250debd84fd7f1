/* Ranks that ended after the cause are one entry. */
#include "coordinator/wlb/history/fold_faults.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/wlb/output/error_text.h"

static json_t *fault(int attempt, int rank, const char *node, int is_cause)
{
	return json_pack("{s:i, s:s, s:i, s:s, s:b, s:s}", "attempt", attempt, "kind", "rank_lost", "rank", rank,
	                 "node", node, "cause", is_cause, "detail", "ended with exit code 1");
}

static const char *text_of(const json_t *list, size_t index, const char *key)
{
	return json_string_value(json_object_get(json_array_get(list, index), key));
}

static void consequences_are_one_entry(void **state)
{
	json_t *faults = json_array(), *folded;
	(void)state;
	json_array_append_new(faults, fault(1, 5, "n1", 1));
	for (int rank = 31; rank >= 0; rank--)
		if (rank != 5)
			json_array_append_new(faults, fault(1, rank, rank < 16 ? "n1" : "n2", 0));
	json_array_append_new(faults, fault(2, 1, "n1", 0)); /* its cause is not among them */
	json_array_append_new(faults, fault(2, 2, "n1", 0));
	json_array_append_new(faults, fault(3, 1, "n1", 1));
	json_array_append_new(faults, fault(3, 2, "n1", 0)); /* one alone stays as it is */
	folded = wlb_faults_fold(faults);
	assert_int_equal(json_array_size(folded), 6);
	assert_string_equal(text_of(folded, 0, "detail"), "ended with exit code 1");
	assert_string_equal(text_of(folded, 1, "detail"), "at least 31 more ranks ended after it: 0-4,6-31 on n[1-2]");
	assert_null(json_object_get(json_array_get(folded, 1), "rank"));
	assert_string_equal(text_of(folded, 5, "detail"), "ended with exit code 1");
	/* What was given is not changed. */
	assert_int_equal(json_array_size(faults), 36);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(faults, 1), "rank")), 31);
	json_decref(folded);
	json_decref(faults);
}

static void listed_faults_of_several_runs_are_told_apart(void **state)
{
	json_t *faults = json_array();
	(void)state;
	for (int run = 0; run < 2; run++)
		for (int rank = 0; rank < 3; rank++)
			json_array_append_new(faults, json_pack("{s:s, s:i, s:s, s:[i], s:i, s:[s], s:b, s:s}",
			                                        "run_id", run == 0 ? "12" : "13", "attempt", 1, "kind",
			                                        "rank_lost", "ranks", rank, "rank_count", 1, "nodes",
			                                        "n1", "cause", rank == 2, "evidence", "e"));
	json_t *folded = wlb_faults_fold(faults);
	assert_int_equal(json_array_size(folded), 4);
	assert_string_equal(text_of(folded, 0, "evidence"), "2 more ranks ended after it: 0-1 on n1");
	assert_string_equal(text_of(folded, 2, "run_id"), "13");
	assert_int_equal(json_integer_value(json_object_get(json_array_get(folded, 2), "rank_count")), 2);
	json_decref(folded);
	json_decref(faults);
}

static void odd_replies_are_taken(void **state)
{
	json_t *faults =
		json_loads("[1,null,{},{\"cause\":false,\"kind\":\"rank_lost\"},{\"kind\":7,\"cause\":true}]", 0, NULL);
	json_t *folded = wlb_faults_fold(faults);
	(void)state;
	assert_int_equal(json_array_size(folded), 5);
	json_decref(folded);
	json_decref(faults);
	folded = wlb_faults_fold(NULL);
	assert_int_equal(json_array_size(folded), 0);
	json_decref(folded);
}

static void an_error_is_one_line(void **state)
{
	char text[256];
	json_t *error = json_pack("{s:s, s:s, s:i}", "text", "ValueError: bad", "cause", "KeyError: 'x'", "rank", 3);
	(void)state;
	wlb_error_text(error, text, sizeof(text));
	assert_string_equal(text, "rank 3: ValueError: bad (because of KeyError: 'x')");
	json_object_set_new(error, "rank", json_null());
	json_object_set_new(error, "cause", json_string(""));
	json_object_set_new(error, "is_consequence", json_true());
	wlb_error_text(error, text, sizeof(text));
	assert_string_equal(text,
	                    "ValueError: bad; a consequence of the end of another process, whose error was not found");
	wlb_error_text(NULL, text, sizeof(text));
	assert_string_equal(text, "");
	json_decref(error);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(consequences_are_one_entry),
		cmocka_unit_test(listed_faults_of_several_runs_are_told_apart),
		cmocka_unit_test(odd_replies_are_taken),
		cmocka_unit_test(an_error_is_one_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
