/* Which source counts, value by value, in any order of their coming; each record once; steps that are known, that are
 * of the attempt alone, that are not said and that go back. */
#include "follow/value_merge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct wlb_merge *merge;
static struct wlb_merged merged;

static int setup(void **state)
{
	(void)state;
	merge = wlb_merge_open();
	return merge == NULL;
}

static int teardown(void **state)
{
	(void)state;
	wlb_merge_close(merge);
	return 0;
}

/* Takes a record with these names, one letter or word each between spaces. Returns "STEP names that count"; a is a step
 * of the attempt, ? none, and * stands before progress. */
static const char *take(enum wlb_source source, int stream, int64_t at, enum wlb_followed_step kind, int64_t step,
                        const char *names)
{
	static char text[256], copy[256];
	struct wlb_origin origin = {source, stream, 0, at};
	struct wlb_followed record;
	char *to = text, *rest = copy, *name;
	wlb_followed_begin(&record);
	if (kind != WLB_FOLLOWED_NO_STEP)
		wlb_followed_set_step(&record, kind, (double)step);
	strcpy(copy, names);
	while ((name = strsep(&rest, " ")) != NULL)
		if (name[0] != '\0')
			wlb_followed_add(&record, name, strlen(name), 1);
	wlb_merge_take(merge, &origin, &record, &merged);
	if (merged.step_kind == WLB_FOLLOWED_NO_STEP)
		return "?";
	to += sprintf(to, "%s%s%d", merged.is_progress ? "*" : "",
	              merged.step_kind == WLB_FOLLOWED_STEP_OF_ATTEMPT ? "a" : "", (int)merged.step);
	for (int i = 0; i < merged.count; i++)
		to += sprintf(to, " %s", record.values[merged.values[i]].name);
	return text;
}

#define STEP WLB_FOLLOWED_STEP
#define OF_ATTEMPT WLB_FOLLOWED_STEP_OF_ATTEMPT
#define NO_STEP WLB_FOLLOWED_NO_STEP

static void each_value_is_of_its_best_source(void **state)
{
	(void)state;
	assert_string_equal(take(WLB_SOURCE_STDOUT, 0, 10, STEP, 5, "loss lr x"), "*5 loss lr x");
	assert_string_equal(take(WLB_SOURCE_TENSORBOARD, 0, 10, STEP, 5, "loss y"), "5 loss y");
	assert_string_equal(take(WLB_SOURCE_HOOK, 0, 10, STEP, 5, "loss lr y z"), "5 z");
	assert_string_equal(take(WLB_SOURCE_LOG, 0, 10, STEP, 5, "lr"), "5 lr");
	assert_string_equal(take(WLB_SOURCE_STDOUT, 0, 90, STEP, 5, "loss lr x"), "5 x");
	assert_int_equal(wlb_merge_count(merge).outranked, 5);
}

static void a_record_counts_once(void **state)
{
	(void)state;
	assert_string_equal(take(WLB_SOURCE_STDOUT, 0, 10, STEP, 5, "loss"), "*5 loss");
	assert_string_equal(take(WLB_SOURCE_STDOUT, 0, 20, STEP, 6, "loss"), "*6 loss");
	assert_int_equal(wlb_merge_count(merge).repeated, 0);
	assert_string_equal(take(WLB_SOURCE_STDOUT, 0, 20, STEP, 6, "loss"), "6");
	assert_int_equal(wlb_merge_count(merge).repeated, 1);
	assert_string_equal(take(WLB_SOURCE_STDOUT, 0, 10, STEP, 5, "loss"), "5"); /* read again from before */
}

static void a_step_that_is_done_again_counts_anew(void **state)
{
	(void)state;
	assert_string_equal(take(WLB_SOURCE_LOG, 0, 10, STEP, 8, "loss"), "*8 loss");
	assert_string_equal(take(WLB_SOURCE_LOG, 0, 20, STEP, 9, "loss"), "*9 loss");
	assert_string_equal(take(WLB_SOURCE_LOG, 0, 30, STEP, 8, "loss"), "*8 loss");
	assert_int_equal(wlb_merge_count(merge).steps_back, 1);
	assert_string_equal(take(WLB_SOURCE_LOG, 0, 40, STEP, 9, "loss"), "*9 loss");
	assert_int_equal(wlb_merge_count(merge).steps_back, 1);
}

/* The order in which origins come has no influence on what is stored last. */
static void the_same_value_is_left_in_every_order(void **state)
{
	static const struct wlb_origin origins[] = {{WLB_SOURCE_STDOUT, 0, 0, 10},
	                                            {WLB_SOURCE_TENSORBOARD, 1, 0, 50},
	                                            {WLB_SOURCE_TENSORBOARD, 0, 1, 5},
	                                            {WLB_SOURCE_TENSORBOARD, 0, 0, 70}};
	enum { ORIGINS = 4 };
	(void)state;
	for (int seed = 0; seed < 256; seed++) {
		struct wlb_merge *one = wlb_merge_open();
		struct wlb_followed record;
		int stored = -1;
		bool is_given[ORIGINS] = {false};
		for (int i = 0; i < ORIGINS; i++) {
			int which = seed >> (2 * i) & 3;
			is_given[which] = true;
			wlb_followed_begin(&record);
			wlb_followed_set_step(&record, STEP, 3);
			wlb_followed_add(&record, "loss", 4, 1);
			wlb_merge_take(one, &origins[which], &record, &merged);
			stored = merged.count == 1 ? which : stored;
		}
		int best = is_given[2] ? 2 : is_given[3] ? 3 : is_given[1] ? 1 : 0;
		assert_int_equal(stored, best);
		wlb_merge_close(one);
	}
}

static void a_count_is_never_a_step_of_the_run(void **state)
{
	(void)state;
	assert_string_equal(take(WLB_SOURCE_HOOK, 0, 10, OF_ATTEMPT, 1, ""), "*a1");
	assert_string_equal(take(WLB_SOURCE_HOOK, 0, 20, OF_ATTEMPT, 2, "lr"), "*a2 lr");
	assert_string_equal(take(WLB_SOURCE_STDOUT, 0, 10, NO_STEP, 0, "loss"), "a2 loss");
	assert_string_equal(take(WLB_SOURCE_TENSORBOARD, 0, 10, STEP, 102, "loss"), "*102 loss");
	assert_string_equal(take(WLB_SOURCE_HOOK, 0, 30, OF_ATTEMPT, 3, "lr"), "102 lr");
	assert_string_equal(take(WLB_SOURCE_STDOUT, 0, 20, NO_STEP, 0, "epoch"), "102 epoch");
}

static void a_value_without_any_step_is_counted(void **state)
{
	(void)state;
	assert_string_equal(take(WLB_SOURCE_STDOUT, 0, 10, NO_STEP, 0, "loss epoch"), "?");
	assert_int_equal(wlb_merge_count(merge).without_step, 2);
}

/* stdout is ahead of TensorBoard, and counts the same. */
static void who_agrees_may_be_ahead(void **state)
{
	(void)state;
	for (int step = 10; step <= 100; step += 10)
		take(WLB_SOURCE_STDOUT, 0, step, STEP, step, "loss");
	assert_string_equal(take(WLB_SOURCE_TENSORBOARD, 0, 10, STEP, 10, "loss"), "10 loss");
	assert_string_equal(take(WLB_SOURCE_STDOUT, 0, 110, STEP, 110, "loss"), "*110 loss");
	assert_string_equal(take(WLB_SOURCE_TENSORBOARD, 0, 20, STEP, 20, "loss"), "20 loss");
	assert_int_equal(wlb_merge_count(merge).steps_back, 0);
}

/* TensorBoard has samples in place of steps: the better source says where training is. */
static void who_counts_otherwise_does_not_lead(void **state)
{
	(void)state;
	assert_string_equal(take(WLB_SOURCE_TENSORBOARD, 0, 10, STEP, 51200, "loss"), "*51200 loss");
	assert_string_equal(take(WLB_SOURCE_LOG, 0, 10, STEP, 100, "loss"), "*100 loss");
	assert_string_equal(take(WLB_SOURCE_TENSORBOARD, 0, 20, STEP, 51712, "lr"), "51712 lr");
	assert_string_equal(take(WLB_SOURCE_STDOUT, 0, 20, NO_STEP, 0, "x"), "100 x");
	assert_string_equal(take(WLB_SOURCE_LOG, 0, 20, STEP, 101, "loss"), "*101 loss");
}

static void epochs_of_tensorboard_are_no_progress(void **state)
{
	(void)state;
	assert_string_equal(take(WLB_SOURCE_TENSORBOARD, 0, 10, STEP, 500, "loss"), "*500 loss");
	assert_string_equal(take(WLB_SOURCE_TENSORBOARD, 0, 20, STEP, 1, "epoch_loss"), "1 epoch_loss");
	assert_string_equal(take(WLB_SOURCE_TENSORBOARD, 0, 30, STEP, 510, "loss"), "*510 loss");
	assert_int_equal(wlb_merge_count(merge).steps_back, 0);
}

static void names_are_bounded(void **state)
{
	enum { NAMES = 1000000 };
	char name[16];
	(void)state;
	for (int i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		take(WLB_SOURCE_LOG, 0, i, STEP, 1, name);
		assert_int_equal(merged.count, i < WLB_MERGE_NAMES_MOST);
	}
	assert_int_equal(wlb_merge_count(merge).names_left_out, NAMES - WLB_MERGE_NAMES_MOST);
	assert_string_equal(take(WLB_SOURCE_LOG, 0, 2 * NAMES, STEP, 2, "n7 n900"), "*2 n7");
}

/* What is no longer remembered is left to the store. */
static void old_steps_are_passed_on(void **state)
{
	(void)state;
	for (int step = 1; step <= 3 * WLB_MERGE_STEPS; step++)
		take(WLB_SOURCE_STDOUT, 0, step, STEP, step, "loss");
	assert_string_equal(take(WLB_SOURCE_TENSORBOARD, 0, 1, STEP, 1, "loss"), "1 loss");
	assert_string_equal(take(WLB_SOURCE_STDOUT, 0, 3 * WLB_MERGE_STEPS, STEP, 3 * WLB_MERGE_STEPS, "loss"), "753");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_value_is_of_its_best_source, setup, teardown),
		cmocka_unit_test_setup_teardown(a_record_counts_once, setup, teardown),
		cmocka_unit_test_setup_teardown(a_step_that_is_done_again_counts_anew, setup, teardown),
		cmocka_unit_test(the_same_value_is_left_in_every_order),
		cmocka_unit_test_setup_teardown(a_count_is_never_a_step_of_the_run, setup, teardown),
		cmocka_unit_test_setup_teardown(a_value_without_any_step_is_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(who_agrees_may_be_ahead, setup, teardown),
		cmocka_unit_test_setup_teardown(who_counts_otherwise_does_not_lead, setup, teardown),
		cmocka_unit_test_setup_teardown(epochs_of_tensorboard_are_no_progress, setup, teardown),
		cmocka_unit_test_setup_teardown(names_are_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(old_steps_are_passed_on, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
