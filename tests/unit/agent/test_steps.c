/* The steps in a report: what is reported once, again where a report was not accepted, and of areas that hold anything.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "coordinator/agent/steps.h"
#include "tests/unit/agent/traced_node.h"

struct fixture {
	struct traced_node node;
	struct wlb_agent_steps steps;
};

static struct fixture *open_node(int ranks)
{
	struct fixture *f = calloc(1, sizeof(*f));
	assert_non_null(f);
	traced_node_open(&f->node, ranks);
	return f;
}

static void close_node(struct fixture *f)
{
	wlb_agent_steps_free(&f->steps);
	traced_node_close(&f->node);
	free(f);
}

static void end_step(struct fixture *f, int area, int64_t number)
{
	struct wlb_trace_step step = {.step = number, .seconds = 0.5, .loader_s = -1.0};
	wlb_rank_trace_add_step(f->node.areas[area], &step);
}

/* The body of a report; the caller releases it. */
static json_t *report(struct fixture *f)
{
	json_t *body = json_object();
	wlb_agent_steps_report(&f->steps, f->node.page, &f->node.tasks, body);
	return body;
}

static void assert_reports(struct fixture *f, const char *expected)
{
	assert_body(report(f), expected);
}

static void all_numbers_are_told(void **state)
{
	(void)state;
	struct fixture *f = open_node(1);
	struct wlb_trace_step step = {.step = 7,
	                              .seconds = 1.5,
	                              .aside_s = 0.25,
	                              .computed_s = 1.0000004,
	                              .work = 0.75,
	                              .loader_s = 0.125,
	                              .storage_s = 0.0,
	                              .has_loss = 1,
	                              .loss = 2.5,
	                              .transfer_count = 2};
	wlb_rank_trace_add_group(f->node.areas[0], "tp", 2);
	step.transfers[0] = (struct wlb_trace_transfer){.group = 0, .calls = 3, .bytes = 4096, .blocked_s = 0.5};
	step.transfers[1].group = wlb_rank_trace_add_group(f->node.areas[0], "pp 0>1\n", 2);
	step.transfers[1].blocked_s = -1.0;
	wlb_rank_trace_add_step(f->node.areas[0], &step);
	assert_reports(f, "{\"steps\":[[4,7,1500000,250000,1000000,0.75,125000,0,2.5,null,"
	                  "[[\"tp\",3,500000,4096],[\"pp 0>1?\",0,null,0]]]]}");
	close_node(f);
}

static void a_step_is_told_until_a_report_is_accepted(void **state)
{
	(void)state;
	struct fixture *f = open_node(2);
	end_step(f, 0, 1);
	end_step(f, 1, 1);
	const char *first =
		"{\"steps\":[[4,1,500000,0,0,null,null,0,null,null,[]],[5,1,500000,0,0,null,null,0,null,null,[]]]}";
	assert_reports(f, first);
	assert_reports(f, first);
	wlb_agent_steps_accepted(&f->steps);
	assert_reports(f, "{}");
	end_step(f, 1, 2);
	assert_reports(f, "{\"steps\":[[5,2,500000,0,0,null,null,0,null,null,[]]]}");
	close_node(f);
}

/* The steps of a rank in a report. */
struct told {
	int count;
	int64_t first, last;
};

static struct told told_of(const json_t *body, int rank)
{
	size_t i;
	json_t *entry;
	struct told told = {0};
	json_array_foreach(json_object_get(body, "steps"), i, entry)
	{
		if (json_integer_value(json_array_get(entry, 0)) != rank)
			continue;
		told.last = json_integer_value(json_array_get(entry, 1));
		if (told.count++ == 0)
			told.first = told.last;
	}
	return told;
}

static void what_is_overwritten_is_counted(void **state)
{
	(void)state;
	struct fixture *f = open_node(1);
	for (int64_t number = 1; number <= WLB_TRACE_STEPS + 9; number++)
		end_step(f, 0, number);
	json_t *body = report(f);
	struct told told = told_of(body, 4);
	assert_int_equal(json_integer_value(json_object_get(body, "lost_steps")), 9);
	assert_int_equal(told.count, WLB_TRACE_STEPS);
	assert_int_equal(told.first, 10);
	assert_int_equal(told.last, WLB_TRACE_STEPS + 9);
	wlb_agent_steps_accepted(&f->steps);
	assert_reports(f, "{}");
	json_decref(body);
	close_node(f);
}

/* All of eight ranks, of which one tells nothing, come to the same step. */
static void ranks_have_equal_shares(void **state)
{
	(void)state;
	struct fixture *f = open_node(8);
	for (int64_t number = 1; number <= 50; number++)
		for (int area = 0; area < 7; area++)
			end_step(f, area, number);
	for (int64_t begin = 1; begin <= 33; begin += 32) {
		json_t *body = report(f);
		for (int rank = 4; rank < 11; rank++) {
			assert_int_equal(told_of(body, rank).first, begin);
			assert_int_equal(told_of(body, rank).count, begin == 1 ? 32 : 18);
		}
		wlb_agent_steps_accepted(&f->steps);
		json_decref(body);
	}
	assert_reports(f, "{}");
	close_node(f);
}

static void each_step_of_all_ranks_is_before_the_next(void **state)
{
	(void)state;
	struct fixture *f = open_node(3);
	for (int64_t number = 8; number <= 16; number += 8)
		for (int area = 2; area >= 0; area--)
			end_step(f, area, number);
	json_t *body = report(f);
	for (size_t i = 0; i < 6; i++) {
		json_t *entry = json_array_get(json_object_get(body, "steps"), i);
		assert_int_equal(json_integer_value(json_array_get(entry, 0)), 4 + i % 3);
		assert_int_equal(json_integer_value(json_array_get(entry, 1)), i < 3 ? 8 : 16);
	}
	json_decref(body);
	close_node(f);
}

/* A node with more ranks than a report has steps tells those of all, in turns. */
static void many_ranks_take_turns(void **state)
{
	(void)state;
	struct fixture *f = open_node(400);
	char *told = calloc(404, 1);
	for (int area = 0; area < 400; area++)
		end_step(f, area, 1);
	for (int i = 0; i < 2; i++) {
		size_t n;
		json_t *entry, *body = report(f);
		assert_int_equal(json_array_size(json_object_get(body, "steps")), i == 0 ? 256 : 144);
		json_array_foreach(json_object_get(body, "steps"), n, entry)
			told[json_integer_value(json_array_get(entry, 0))]++;
		wlb_agent_steps_accepted(&f->steps);
		json_decref(body);
	}
	for (int rank = 4; rank < 404; rank++)
		assert_int_equal(told[rank], 1);
	free(told);
	close_node(f);
}

static void the_longest_report_is_below_the_bound(void **state)
{
	(void)state;
	struct fixture *f = open_node(4);
	struct wlb_trace_step step = {.seconds = 9999999.123456,
	                              .aside_s = 9999999.123456,
	                              .computed_s = 9999999.123456,
	                              .work = 1.2345678901234567e-300,
	                              .loader_s = 9999999.123456,
	                              .storage_s = 9999999.123456,
	                              .has_loss = 1,
	                              .loss = -1.2345678901234567e-99,
	                              .has_gradient_norm = 1,
	                              .gradient_norm = 1.2345678901234567e-99,
	                              .transfer_count = WLB_TRACE_TRANSFERS};
	for (int area = 0; area < 4; area++)
		for (int i = 0; i < WLB_TRACE_TRANSFERS; i++) {
			wlb_rank_trace_add_group(f->node.areas[area], "a name of fifteen", 2);
			step.transfers[i] = (struct wlb_trace_transfer){
				.group = i, .calls = UINT64_MAX, .bytes = UINT64_MAX, .blocked_s = 9999999.123456};
		}
	for (int area = 0; area < 4; area++)
		for (int i = 1; i <= WLB_TRACE_STEPS; i++) {
			step.step = 999999999000 + i;
			wlb_rank_trace_add_step(f->node.areas[area], &step);
		}
	json_t *body = report(f);
	char *text = json_dumps(body, JSON_COMPACT);
	assert_int_equal(json_array_size(json_object_get(body, "steps")), WLB_AGENT_STEPS_MAX);
	assert_in_range(strlen(text), 100000, 700000);
	free(text);
	json_decref(body);
	close_node(f);
}

/* Whatever a rank writes, its node's report must not be refused. */
static void no_number_is_out_of_bounds(void **state)
{
	(void)state;
	struct fixture *f = open_node(1);
	struct wlb_trace_step step = {.step = 3,
	                              .seconds = 1e300,
	                              .aside_s = NAN,
	                              .computed_s = -0.5,
	                              .work = INFINITY,
	                              .has_loss = 1,
	                              .loss = NAN,
	                              .has_gradient_norm = 1,
	                              .gradient_norm = -2.0,
	                              .transfer_count = 3};
	step.transfers[0].group = 63;
	step.transfers[1].group = -1;
	step.transfers[2] = (struct wlb_trace_transfer){.group = 0, .calls = UINT64_MAX, .blocked_s = INFINITY};
	wlb_rank_trace_add_group(f->node.areas[0], "", 2);
	wlb_rank_trace_add_step(f->node.areas[0], &step);
	wlb_rank_trace_add_step(f->node.areas[0], &step); /* the same step again */
	step.step = -1;
	wlb_rank_trace_add_step(f->node.areas[0], &step);
	step.step = INT64_MAX;
	wlb_rank_trace_add_step(f->node.areas[0], &step);
	step = (struct wlb_trace_step){.step = 4, .has_loss = 1, .loss = -INFINITY};
	wlb_rank_trace_add_step(f->node.areas[0], &step);
	assert_reports(f, "{\"steps\":[[4,3,null,null,null,null,0,0,\"nan\",null,[[\"?\",1000000000000000,null,0]]],"
	                  "[4,4,0,0,0,null,0,0,\"-inf\",null,[]]],\"lost_steps\":3}");
	close_node(f);
}

static void a_new_process_of_a_rank_is_told_from_its_first_step(void **state)
{
	(void)state;
	struct fixture *f = open_node(1);
	for (int64_t number = 1; number <= 9; number++)
		end_step(f, 0, number);
	json_decref(report(f));
	wlb_agent_steps_accepted(&f->steps);
	assert_ptr_equal(wlb_node_page_take_area(f->node.page, TRACED_FIRST_RANK), f->node.areas[0]);
	end_step(f, 0, 5);
	assert_reports(f, "{\"steps\":[[4,5,500000,0,0,null,null,0,null,null,[]]]}");
	close_node(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_numbers_are_told),
		cmocka_unit_test(a_step_is_told_until_a_report_is_accepted),
		cmocka_unit_test(what_is_overwritten_is_counted),
		cmocka_unit_test(ranks_have_equal_shares),
		cmocka_unit_test(each_step_of_all_ranks_is_before_the_next),
		cmocka_unit_test(many_ranks_take_turns),
		cmocka_unit_test(the_longest_report_is_below_the_bound),
		cmocka_unit_test(no_number_is_out_of_bounds),
		cmocka_unit_test(a_new_process_of_a_rank_is_told_from_its_first_step),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
