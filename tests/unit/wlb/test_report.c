/* What the page of `wlb report` is made of: curves that are thinned, means of parts, schedules, lateness, settings,
 * advice, the page. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/wlb/report/advice.h"
#include "coordinator/wlb/report/curve.h"
#include "coordinator/wlb/report/page.h"
#include "coordinator/wlb/report/part_means.h"
#include "coordinator/wlb/report/pipeline.h"
#include "coordinator/wlb/report/rank_cells.h"
#include "coordinator/wlb/report/settings.h"

static json_t *parse(const char *text)
{
	json_error_t error;
	json_t *value = json_loads(text, 0, &error);
	if (value == NULL)
		fail_msg("%s: %s", error.text, text);
	return value;
}

static json_int_t whole(const json_t *columns, const char *name, size_t i)
{
	return json_integer_value(json_array_get(json_object_get(columns, name), i));
}

/* ---- curves ---- */

static double loss_of(int step)
{
	return step == 777 ? 99.0 : 3.0 - step * 1e-4;
}

/* Steps from 1; step 5000 has no loss, 777 a peak, 9100 is slow. */
static json_t *curve_of(int steps, int points, double run_tokens)
{
	struct wlb_report_curve *curve = wlb_report_curve_new(1, steps, points);
	assert_non_null(curve);
	for (int step = 1; step <= steps; step++) {
		json_t *entry =
			json_pack("{s:i, s:i, s:o, s:f, s:i, s:f, s:f}", "step", step, "attempt", 1, "loss",
		                  step == 5000 ? json_null() : json_real(loss_of(step)), "tokens_per_s",
		                  step == 9100 ? 10.0 : 100.0, "tokens", 7, "time", 1e9 + step, "step_time_s", 0.25);
		wlb_report_curve_add(curve, entry);
		json_decref(entry);
	}
	json_t *columns = wlb_report_curve_json(curve, run_tokens);
	assert_non_null(columns);
	wlb_report_curve_free(curve);
	return columns;
}

static void a_thinned_curve_keeps_what_stands_out(void **state)
{
	(void)state;
	json_t *columns = curve_of(10000, 100, 0);
	size_t count = json_array_size(json_object_get(columns, "step"));
	bool has_peak = false, has_none = false, has_slow = false;
	assert_in_range(count, 40, 100);
	for (size_t i = 0; i < count; i++) {
		json_int_t step = whole(columns, "step", i);
		const json_t *loss = json_array_get(json_object_get(columns, "loss"), i);
		assert_true(i == 0 || step > whole(columns, "step", i - 1));
		assert_int_equal(whole(columns, "tokens", i), 7 * step);
		assert_true(json_real_value(json_array_get(json_object_get(columns, "time_s"), i)) ==
		            (double)(step - 1));
		has_peak |= step == 777 && json_real_value(loss) == 99.0;
		has_none |= step == 5000 && json_is_null(loss);
		has_slow |= step == 9100;
	}
	assert_true(has_peak && has_none && has_slow);
	assert_true(json_real_value(json_object_get(columns, "mean_tokens_per_s")) == 28.0);
	assert_int_equal(whole(columns, "step", 0), 1);
	assert_int_equal(whole(columns, "step", count - 1), 10000);
	json_decref(columns);
}

static void a_short_curve_is_whole(void **state)
{
	(void)state;
	json_t *columns = curve_of(100, 100, 0);
	assert_int_equal(json_array_size(json_object_get(columns, "step")), 100);
	json_decref(columns);
}

/* Of steps at equal distances, the last has all tokens of the run. */
static void tokens_of_some_steps_are_in_proportion(void **state)
{
	(void)state;
	json_t *columns = curve_of(100, 100, 70000);
	assert_int_equal(whole(columns, "tokens", 99), 70000);
	assert_int_equal(whole(columns, "tokens", 49), 35000);
	json_decref(columns);
}

/* A run goes on while it is read, and what users record may be anything. */
static void steps_outside_of_the_range_are_no_error(void **state)
{
	(void)state;
	static const char *const steps[] = {"{\"step\":-5,\"loss\":1}", "{\"step\":30,\"loss\":\"x\"}", "{}",
	                                    "{\"step\":1000000000000,\"loss\":2,\"parts\":{\"forward_s\":1}}"};
	struct wlb_report_curve *curve = wlb_report_curve_new(10, 20, 5);
	struct wlb_part_means *means = wlb_part_means_new(10, 20);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		json_t *step = parse(steps[i]);
		wlb_report_curve_add(curve, step);
		wlb_part_means_add(means, step);
		json_decref(step);
	}
	json_t *columns = wlb_report_curve_json(curve, 0), *parts = wlb_part_means_json(means);
	assert_int_equal(json_array_size(json_object_get(columns, "step")), 3);
	assert_int_equal(json_array_size(json_object_get(parts, "step")), 1);
	json_decref(columns);
	json_decref(parts);
	wlb_report_curve_free(curve);
	wlb_part_means_free(means);
}

static void parts_are_means_of_stretches(void **state)
{
	(void)state;
	struct wlb_part_means *means = wlb_part_means_new(1, 400);
	for (int step = 1; step <= 400; step++) {
		json_t *entry =
			json_pack("{s:i, s:{s:i, s:f}}", "step", step, "parts", "forward_s", step % 2, "dp_s", 3.0);
		wlb_part_means_add(means, entry);
		json_decref(entry);
	}
	json_t *parts = wlb_part_means_json(means), *seconds = json_object_get(parts, "seconds");
	assert_int_equal(json_array_size(json_object_get(parts, "step")), 200);
	assert_int_equal(whole(parts, "step", 199), 399);
	assert_string_equal(json_string_value(json_array_get(json_object_get(parts, "names"), 0)), "forward_s");
	assert_true(json_real_value(json_array_get(json_array_get(seconds, 0), 7)) == 0.5);
	assert_true(json_real_value(json_array_get(json_array_get(seconds, 1), 7)) == 3.0);
	json_decref(parts);
	wlb_part_means_free(means);
}

/* ---- pipeline ---- */

static json_t *schedule_of(const char *plan, const char *parts)
{
	char text[512];
	snprintf(text, sizeof(text), "{\"attempts\":[{\"plan\":%s},{}]}", plan);
	json_t *run = parse(text), *known = parse(parts), *schedule = wlb_report_pipeline(run, known);
	json_decref(run);
	json_decref(known);
	assert_non_null(schedule);
	return schedule;
}

/* (pp - 1) of (m + pp - 1) is bubble, interleaved a v-th of the idle time (Narayanan et al. 2021). */
static void the_bubble_is_the_closed_form(void **state)
{
	(void)state;
	static const int cases[][3] = {{2, 1, 4}, {4, 1, 8}, {4, 2, 8}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char plan[160];
		int pp = cases[i][0], v = cases[i][1], m = cases[i][2];
		snprintf(plan, sizeof(plan),
		         "{\"layout\":{\"tp\":1,\"cp\":1,\"pp\":%d,\"dp\":1},\"interleave\":%d,\"micro_batches\":%d}",
		         pp, v, m);
		json_t *schedule = schedule_of(plan, "{}");
		double idle = (double)(pp - 1) / (v * m), bubble = json_real_value(json_object_get(schedule, "bubble"));
		if (fabs(bubble - idle / (1.0 + idle)) > 1e-12)
			fail_msg("pp %d, interleave %d, micro-batches %d: %.6f", pp, v, m, bubble);
		assert_int_equal(json_array_size(json_object_get(schedule, "passes")), 2 * pp * v * m);
		assert_string_equal(json_string_value(json_object_get(schedule, "unit")), "forward passes");
		assert_true(fabs(json_real_value(json_object_get(schedule, "end")) - 3.0 * (v * m + pp - 1)) < 1e-9);
		json_decref(schedule);
	}
}

static void passes_take_what_was_measured(void **state)
{
	(void)state;
	json_t *schedule = schedule_of("{\"layout\":{\"pp\":2},\"micro_batches\":4}",
	                               "{\"names\":[\"forward_s\",\"backward_s\"],\"seconds\":[[1,3],[6]]}");
	assert_string_equal(json_string_value(json_object_get(schedule, "unit")), "s");
	assert_true(fabs(json_real_value(json_object_get(schedule, "end")) - 10.0) <
	            1e-12); /* 5 passes of 0.5 s and of 1.5 s */
	json_decref(schedule);
}

static void plans_that_cannot_be_drawn_have_no_schedule(void **state)
{
	(void)state;
	static const char *const plans[] = {
		"null",
		"{\"layout\":{\"pp\":1},\"micro_batches\":4}",
		"{\"layout\":{\"pp\":2},\"micro_batches\":0}",
		"{\"layout\":{\"pp\":2}}",
		"{\"layout\":{\"pp\":2},\"micro_batches\":2000000000}",
		"{\"layout\":{\"pp\":2000000000},\"micro_batches\":2}",
		"{\"layout\":{\"pp\":2},\"micro_batches\":-4}",
		"{\"layout\":{\"pp\":4},\"interleave\":2,\"micro_batches\":6}",
		"{\"layout\":{\"pp\":4},\"interleave\":0,\"micro_batches\":8}",
		"{\"layout\":{\"pp\":64},\"micro_batches\":64}",
		"{\"layout\":{\"pp\":\"2\"},\"micro_batches\":4}",
		"{\"layout\":{\"pp\":1073741824},\"interleave\":1073741824,\"micro_batches\":1073741824}"}; /* 2^91
	                                                                                                       passes */
	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		json_t *schedule = schedule_of(plans[i], "{}");
		if (!json_is_null(schedule))
			fail_msg("%s has a schedule", plans[i]);
		json_decref(schedule);
	}
}

/* ---- ranks and settings ---- */

static void many_ranks_share_cells(void **state)
{
	(void)state;
	json_t *rows = json_array(), *reply;
	for (int rank = 0; rank < 10000; rank++)
		json_array_append_new(rows, json_pack("[i, i, i]", rank, rank / 8, rank == 6001 ? 500 : -3));
	reply = json_pack("{s:[s, s, s], s:o, s:[s]}", "columns", "rank", "node", "late_us", "ranks", rows, "nodes",
	                  "n1");
	json_t *cells = wlb_rank_cells(reply), *list = json_object_get(cells, "cells");
	assert_int_equal(json_integer_value(json_object_get(cells, "ranks_each")), 3);
	assert_int_equal(json_array_size(list), 3334);
	assert_int_equal(json_integer_value(json_array_get(json_array_get(list, 2000), 0)), 6000);
	assert_int_equal(json_integer_value(json_array_get(json_array_get(list, 2000), 2)), 500);
	assert_int_equal(json_integer_value(json_array_get(json_array_get(list, 1999), 2)), -3);
	json_decref(cells);
	json_decref(reply);
}

static void ranks_without_lateness_have_no_cells(void **state)
{
	(void)state;
	static const char *const replies[] = {
		"{}", "{\"columns\":[\"rank\",\"node\",\"late_us\"],\"ranks\":[[0,0,null],[1]]}",
		"{\"columns\":[\"rank\"],\"ranks\":[[0]]}"};
	for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
		json_t *reply = parse(replies[i]), *cells = wlb_rank_cells(reply);
		assert_true(json_is_null(cells));
		json_decref(cells);
		json_decref(reply);
	}
}

static const char *setting(const json_t *settings, const char *name)
{
	size_t i;
	const json_t *pair;
	json_array_foreach(settings, i, pair) if (strcmp(json_string_value(json_array_get(pair, 0)), name) ==
	                                          0) return json_string_value(json_array_get(pair, 1));
	return "";
}

/* Names of members are a user's too. */
static void settings_are_texts_without_control_characters(void **state)
{
	(void)state;
	json_t *run = parse("{\"job_name\":\"a\\u202eb\",\"train_iters\":9,\"policy\":{\"layout\":\"auto\",\"x\":null},"
	                    "\"model\":{\"k\\u0085\":{\"deep\":[1]},\"size\":1.5},\"attempts\":[{\"layout\":{\"tp\":1,"
	                    "\"cp\":1,\"pp\":2,\"dp\":4}}]}");
	json_t *settings = wlb_report_settings(run);
	assert_string_equal(setting(settings, "job_name"), "a b");
	assert_string_equal(setting(settings, "train_iters"), "9");
	assert_string_equal(setting(settings, "policy.layout"), "auto");
	assert_string_equal(setting(settings, "policy.x"), "");
	assert_string_equal(setting(settings, "model.k"), "{\"deep\":[1]}");
	assert_string_equal(setting(settings, "layout"), "tp=1,cp=1,pp=2,dp=4");
	json_decref(settings);
	json_decref(run);
}

static void settings_are_bounded(void **state)
{
	(void)state;
	json_t *run = parse("{\"model\":{}}");
	for (int i = 0; i < 1000; i++) {
		char name[32];
		snprintf(name, sizeof(name), "m%d", i);
		json_object_set_new(json_object_get(run, "model"), name, json_integer(i));
	}
	json_t *settings = wlb_report_settings(run);
	assert_int_equal(json_array_size(settings), 200);
	json_decref(settings);
	json_decref(run);
}

/* ---- advice ---- */

/* Each run has the commands, and a word of each text, in this order; "" of a text without a command. */
static void advice_follows_from_the_records(void **state)
{
	(void)state;
	static const struct {
		const char *run, *command, *word;
	} cases[] = {
		{"{\"run_id\":\"7\",\"state\":\"complete\",\"last_step\":9}", NULL, NULL},
		{"{\"run_id\":\"7\",\"state\":\"failed\"}", "wlb logs 7", "before it had recorded a step"},
		{"{\"run_id\":\"7\",\"state\":\"failed\",\"last_step\":9}", "wlb logs 7", "newest checkpoint"},
		{"{\"run_id\":\"7\",\"state\":\"out_of_nodes\",\"last_step\":9}", "wlb faults 7", "Too few nodes"},
		{"{\"run_id\":\"7\",\"state\":\"running\",\"verdicts\":[{\"state\":\"over\"}]}", NULL, NULL},
		{"{\"run_id\":\"7\",\"state\":\"running\",\"verdicts\":[{\"state\":\"confirmed\"}]}", "wlb faults 7",
	         "1 verdict is not over"},
		{"{\"run_id\":\"7\",\"verdicts\":[{\"state\":\"confirmed\"}],\"ended_at\":\"2026-11-20T10:00:00Z\"}",
	         NULL, NULL},
		{"{\"run_id\":\"7\",\"faults\":[{\"node\":\"n1\",\"cause\":true},{\"node\":\"n2\",\"cause\":true},{"
	         "\"node\":\"n2\",\"cause\":true}]}",
	         "wlb faults 7", "Node n2 caused the faults of 2"},
		{"{\"run_id\":\"7\",\"faults\":[{\"node\":\"n1\",\"cause\":true},{\"node\":\"n1\",\"cause\":false}]}",
	         NULL, NULL},
		{"{\"run_id\":\"7\",\"steps_missing\":[{\"attempt\":2,\"first_step\":41,\"last_step\":43,\"node\":"
	         "\"n1\"}]}",
	         "wlb show 7", "Steps 41 to 43 of attempt 2 are not recorded: its rank 0 on n1"},
		{"{\"run_id\":\"7\",\"save_interval\":{\"interval_s\":100,\"interval_steps\":50,\"now_s\":400}}", "",
	         "Save every 50 steps (100 s) rather than every 400 s"},
		{"{\"run_id\":\"7\",\"save_interval\":{\"interval_s\":100,\"interval_steps\":50,\"now_s\":120}}", NULL,
	         NULL},
		{"{\"run_id\":\"7\",\"attempts\":[{\"step_s\":2,\"plan\":{\"step_s\":1}}]}", "wlb show 7",
	         "predicted to take 1 s and took 2 s"},
		{"{\"run_id\":\"7\",\"attempts\":[{\"step_s\":2,\"plan\":{\"step_s\":1.9}}]}", NULL, NULL},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *run = parse(cases[i].run), *advice = wlb_report_advice(run), *first = json_array_get(advice, 0);
		if (json_array_size(advice) != (cases[i].command != NULL))
			fail_msg("%s: %zu pieces of advice", cases[i].run, json_array_size(advice));
		if (first != NULL) {
			assert_string_equal(json_string_value(json_object_get(first, "command")), cases[i].command);
			if (strstr(json_string_value(json_object_get(first, "text")), cases[i].word) == NULL)
				fail_msg("%s", json_string_value(json_object_get(first, "text")));
		}
		json_decref(advice);
		json_decref(run);
	}
}

/* ---- the page ---- */

static void nothing_of_the_data_is_markup(void **state)
{
	(void)state;
	json_t *data = json_pack("{s:s}", "a<b>&c", "</script><!--\xe2\x80\xa8&amp;\"");
	char *json = wlb_report_data_json(data);
	assert_null(strpbrk(json, "<>&"));
	assert_null(strstr(json, "\xe2"));
	json_t *read = parse(json);
	assert_true(json_equal(read, data));
	json_decref(read);
	json_decref(data);
	free(json);
}

/* Only a page that follows a run may ask its own origin, and for that path. */
static void the_policy_allows_requests_only_where_the_page_follows(void **state)
{
	(void)state;
	for (int follows = 0; follows < 2; follows++) {
		char policy[WLB_REPORT_POLICY_BYTES], *page = NULL;
		size_t bytes;
		json_t *data = parse("{\"runs\":[]}");
		FILE *out = open_memstream(&page, &bytes);
		assert_int_equal(wlb_report_page(data, follows ? "/token/data" : NULL, out, NULL), 0);
		fclose(out);
		wlb_report_policy(follows, policy);
		assert_true(strncmp(policy, "default-src 'none'; ", 20) == 0);
		assert_int_equal(strstr(policy, "connect-src 'self'") != NULL, follows);
		assert_null(strstr(policy, "unsafe"));
		assert_non_null(strstr(page, policy));
		assert_int_equal(strstr(page, " data-follow=\"/token/data\"") != NULL, follows);
		json_decref(data);
		free(page);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thinned_curve_keeps_what_stands_out),
		cmocka_unit_test(a_short_curve_is_whole),
		cmocka_unit_test(tokens_of_some_steps_are_in_proportion),
		cmocka_unit_test(steps_outside_of_the_range_are_no_error),
		cmocka_unit_test(parts_are_means_of_stretches),
		cmocka_unit_test(the_bubble_is_the_closed_form),
		cmocka_unit_test(passes_take_what_was_measured),
		cmocka_unit_test(plans_that_cannot_be_drawn_have_no_schedule),
		cmocka_unit_test(many_ranks_share_cells),
		cmocka_unit_test(ranks_without_lateness_have_no_cells),
		cmocka_unit_test(settings_are_texts_without_control_characters),
		cmocka_unit_test(settings_are_bounded),
		cmocka_unit_test(advice_follows_from_the_records),
		cmocka_unit_test(nothing_of_the_data_is_markup),
		cmocka_unit_test(the_policy_allows_requests_only_where_the_page_follows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
