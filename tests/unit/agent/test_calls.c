/* The calls in a report: each reported once, within the bounds of the coordinator, whatever the areas hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>

#include "coordinator/agent/calls.h"
#include "tests/unit/agent/traced_node.h"

/* A node whose ranks have one communicator each. */
struct fixture {
	struct traced_node node;
	struct wlb_agent_calls calls;
};

static struct fixture *open_node(int ranks)
{
	struct fixture *f = calloc(1, sizeof(*f));
	assert_non_null(f);
	traced_node_open(&f->node, ranks);
	for (int i = 0; i < ranks; i++)
		wlb_rank_trace_add_group(f->node.areas[i], "tp", 2);
	return f;
}

static void close_node(struct fixture *f)
{
	wlb_agent_calls_free(&f->calls);
	traced_node_close(&f->node);
	free(f);
}

static void end_call(struct fixture *f, int area, uint64_t seq, double entered_s)
{
	const struct wlb_trace_event call = {.seq = seq,
	                                     .bytes = 64,
	                                     .entered_s = entered_s,
	                                     .blocked_s = entered_s + 1e-6,
	                                     .left_s = entered_s + 0.5};
	wlb_rank_trace_leave(f->node.areas[area], &call);
}

static json_t *report(struct fixture *f)
{
	json_t *body = json_object();
	wlb_agent_calls_report(&f->calls, f->node.page, &f->node.tasks, body);
	return body;
}

static void assert_reports(struct fixture *f, const char *expected)
{
	assert_body(report(f), expected);
}

static void a_call_is_told_once(void **state)
{
	(void)state;
	struct fixture *f = open_node(2);
	assert_reports(f, "{}");
	end_call(f, 0, 1, 10.0);
	end_call(f, 1, 1, 20.25);
	assert_reports(f, "{\"calls\":[[4,\"tp\",1,64,10000000,10000001,10500000],"
	                  "[5,\"tp\",1,64,20250000,20250001,20750000]]}");
	assert_reports(f, "{}");
	end_call(f, 1, 2, 30.0);
	assert_reports(f, "{\"calls\":[[5,\"tp\",2,64,30000000,30000001,30500000]]}");
	close_node(f);
}

static void a_new_process_of_a_rank_is_told_from_its_first_call(void **state)
{
	(void)state;
	struct fixture *f = open_node(1);
	for (uint64_t seq = 1; seq <= 9; seq++)
		end_call(f, 0, seq, (double)seq);
	json_decref(report(f));
	assert_ptr_equal(wlb_node_page_take_area(f->node.page, TRACED_FIRST_RANK), f->node.areas[0]);
	wlb_rank_trace_add_group(f->node.areas[0], "tp", 2);
	end_call(f, 0, 1, 40.0);
	assert_reports(f, "{\"calls\":[[4,\"tp\",1,64,40000000,40000001,40500000]]}");
	close_node(f);
}

static void what_no_rank_can_have_is_left_out(void **state)
{
	(void)state;
	struct fixture *f = open_node(1);
	struct wlb_trace_event call = {.seq = 1, .entered_s = 2.0, .blocked_s = 1.0, .left_s = 3.0};
	wlb_rank_trace_leave(f->node.areas[0], &call);
	call = (struct wlb_trace_event){.seq = 2, .entered_s = NAN, .blocked_s = NAN, .left_s = NAN};
	wlb_rank_trace_leave(f->node.areas[0], &call);
	call = (struct wlb_trace_event){.seq = 3, .entered_s = 1.0, .blocked_s = 1.0, .left_s = 1e300};
	wlb_rank_trace_leave(f->node.areas[0], &call);
	call = (struct wlb_trace_event){.seq = 3, .entered_s = 1.0, .blocked_s = 3.0, .left_s = 2.0};
	wlb_rank_trace_leave(f->node.areas[0], &call);
	call = (struct wlb_trace_event){.seq = 4, .entered_s = -1.0, .blocked_s = 1.0, .left_s = 2.0};
	wlb_rank_trace_leave(f->node.areas[0], &call);
	call = (struct wlb_trace_event){
		.seq = UINT64_MAX, .bytes = UINT64_MAX, .entered_s = 1.0, .blocked_s = 1.0, .left_s = 1.0};
	wlb_rank_trace_leave(f->node.areas[0], &call);
	assert_reports(f, "{\"calls\":[[4,\"tp\",1000000000000000,1000000000000000000,1000000,1000000,1000000]]}");
	close_node(f);
}

static void a_report_has_a_bound(void **state)
{
	(void)state;
	struct fixture *f = open_node(TRACED_RANKS_MAX);
	for (int area = 0; area < TRACED_RANKS_MAX; area++)
		for (uint64_t seq = 1; seq <= 8; seq++)
			end_call(f, area, seq, 10.0 * (double)seq);
	json_t *body = report(f);
	assert_int_equal(json_array_size(json_object_get(body, "calls")), WLB_AGENT_CALLS_MAX);
	json_decref(body);
	close_node(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_is_told_once),
		cmocka_unit_test(a_new_process_of_a_rank_is_told_from_its_first_call),
		cmocka_unit_test(what_no_rank_can_have_is_left_out),
		cmocka_unit_test(a_report_has_a_bound),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
