/* The reports that wlb-agent makes of nodes that are as large as can be, against what wlbd accepts of a request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "coordinator/agent/report.h"
#include "coordinator/wlbd/api/reports/report_read.h"
#include "coordinator/wlbd/api/reports/step_read.h"
#include "coordinator/wlbd/api/routes.h"
#include "coordinator/wlbd/http/body_size.h"
#include "coordinator/wlbd/http/fields.h"

#define ATTEMPT "6e1b0f3c-3c1e-4c39-9ad5-0d6a3d0c1f11"

enum { RANKS_MAX = 128, VALUES_MAX = 400000 /* of a request: docs/api.md */ };

/* As many calls as are kept for reports, of the greatest numbers and times. */
static void fill_calls(struct wlb_rank_trace *area, struct wlb_trace_event call)
{
	const double long_number = 0.123456789012345678;
	for (int i = 0; i < WLB_TRACE_CHOSEN; i++) {
		call.seq++;
		call.entered_s = call.blocked_s = 9e6 + long_number + i;
		call.left_s = call.blocked_s + long_number;
		wlb_rank_trace_enter(area, &call);
		wlb_rank_trace_leave(area, &call);
	}
}

/* Ranks of the greatest numbers, in calls of communicators with the longest names. */
static void fill_rank(struct wlb_rank_trace *area, int groups, int steps)
{
	const double long_number = 0.123456789012345678;
	struct wlb_trace_step step = {.work = long_number,
	                              .computed_s = 9e6 + long_number,
	                              .loader_s = 9e6 + long_number,
	                              .storage_s = 9e6 + long_number,
	                              .seconds = 9e6 + long_number,
	                              .aside_s = 9e6 + long_number,
	                              .has_loss = 1,
	                              .has_gradient_norm = 1,
	                              .loss = -1e99 * long_number,
	                              .gradient_norm = 1e99 * long_number};
	for (int i = 0; i < groups; i++) {
		char name[WLB_TRACE_NAME_SIZE];
		snprintf(name, sizeof(name), "pp_back 9999>%02u", (unsigned)i % 100);
		struct wlb_trace_event call = {.kind = WLB_COMM_ALL_REDUCE_DOUBLE,
		                               .group = wlb_rank_trace_add_group(area, name, 1 << 20),
		                               .seq = UINT64_C(999999999990000),
		                               .bytes = UINT64_C(999999999999999999)};
		fill_calls(area, call);
		wlb_rank_trace_enter(area, &call);
		if (step.transfer_count < WLB_TRACE_TRANSFERS)
			step.transfers[step.transfer_count++] =
				(struct wlb_trace_transfer){call.group, call.seq, call.bytes, 9e6 + long_number};
	}
	wlb_rank_trace_set_step(area, INT64_C(999999999999), long_number);
	for (int i = 0; i < steps; i++) {
		step.step = INT64_C(999999999000) + i;
		wlb_rank_trace_add_step(area, &step);
	}
}

/* Returns the report of a node with these ranks; the caller frees it. */
static char *make_report(int ranks, int groups, int steps)
{
	struct wlb_agent_task tasks[RANKS_MAX];
	const struct wlb_agent_tasks all = {.list = tasks, .expected = ranks, .count = ranks};
	struct wlb_agent_steps told = {0};
	struct wlb_agent_calls told_calls = {0};
	struct wlb_agent_trainer stopped[RANKS_MAX];
	const struct wlb_agent_trainers trainers = {.list = stopped, .count = ranks};
	int fd, next_area = 0;
	struct wlb_node_page *page = wlb_node_page_create(ATTEMPT, ranks, &fd, NULL);
	assert_non_null(page);
	for (int i = 0; i < ranks; i++) {
		int rank = 1000000 + i;
		fill_rank(wlb_node_page_take_area(page, rank), groups, steps);
		tasks[i] = (struct wlb_agent_task){.rank = rank, .pid = getpid(), .code = -1};
		stopped[i] = (struct wlb_agent_trainer){
			.rank = rank, .task = rank, .pid = INT32_MAX, .condition = WLB_PROCESS_STOPPED};
	}
	const struct wlb_agent_report report = {.attempt_id = ATTEMPT,
	                                        .node = "n1",
	                                        .page = page,
	                                        .next_area = &next_area,
	                                        .trainers = &trainers,
	                                        .steps = &told,
	                                        .calls = &told_calls};
	char *text = wlb_agent_report_body(&report, &all);
	assert_non_null(text);
	wlb_agent_steps_free(&told);
	wlb_agent_calls_free(&told_calls);
	wlb_node_page_close(page);
	close(fd);
	return text;
}

static size_t bytes_most(void)
{
	const struct wlbd_route *route;
	char run[WLBD_RUN_NAME_SIZE];
	assert_int_equal(
		wlbd_route_match(wlbd_routes.list, wlbd_routes.count, "POST", "/v1/runs/12/report", &route, run),
		WLBD_MATCH);
	return route->body_max_bytes;
}

/* The report is read, and is `times` below the limits. */
static void check(int ranks, int groups, int steps, size_t told_ranks, size_t told_steps, size_t times)
{
	struct wlbd_report report;
	struct wlb_error error;
	char *text = make_report(ranks, groups, steps);
	size_t length = strlen(text), values = wlbd_body_size(text, length).values;
	json_t *body = wlbd_body_parse(text, length, &error);
	assert_non_null(body);
	if (wlbd_report_read(body, &report, &error) != 0)
		fail_msg("%s", error.message);
	assert_int_equal(json_array_size(report.activities), told_ranks);
	assert_int_equal(json_array_size(report.steps), told_steps);
	assert_true(json_array_size(report.calls) >= told_ranks);
	print_message("%d ranks, %d communicators, %d steps of each: %zu bytes, %zu values\n", ranks, groups, steps,
	              length, values);
	assert_true(times * length < bytes_most());
	assert_true(times * values < VALUES_MAX);
	json_decref(body);
	free(text);
}

static void reports_are_far_below_the_limits(void **state)
{
	(void)state;
	check(8, 10, 1, 8, 8, 12);
	check(16, 16, 1, 16, 16, 8);
	check(16, WLB_TRACE_GROUPS, 1, 16, 16, 8);
	/* After a minute in which wlbd was unavailable. */
	check(8, 10, WLB_TRACE_STEPS, 8, WLBD_STEPS_MAX, 2);
	check(16, WLB_TRACE_GROUPS, WLB_TRACE_STEPS, 16, WLBD_STEPS_MAX, 2);
	/* As many ranks as a report tells of. */
	check(RANKS_MAX, WLB_TRACE_GROUPS, WLB_TRACE_STEPS, 64, WLBD_STEPS_MAX, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(reports_are_far_below_the_limits)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
