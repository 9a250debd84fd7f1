#include "coordinator/agent/calls.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "coordinator/agent/areas.h"

/* The coordinator refuses a report with numbers beyond these, which no rank has but any process of the user can write.
 */
static const double clock_max_s = 1e9;
static const uint64_t seq_max = UINT64_C(1000000000000000), bytes_max = UINT64_C(1000000000000000000);

static bool has_times(const struct wlb_trace_event *call)
{
	return call->entered_s >= 0.0 && call->entered_s <= call->blocked_s && call->blocked_s <= call->left_s &&
	       call->left_s <= clock_max_s;
}

static json_int_t microseconds(double value_s)
{
	return llround(1e6 * value_s);
}

static json_t *call_json(int rank, const struct wlb_trace_event *call, const struct wlb_trace_group *group)
{
	return json_pack("[i, s, I, I, I, I, I]", rank, group->name, wlb_agent_at_most(call->seq, seq_max),
	                 wlb_agent_at_most(call->bytes, bytes_max), microseconds(call->entered_s),
	                 microseconds(call->blocked_s), microseconds(call->left_s));
}

static void report_area(const struct wlb_rank_trace *trace, int rank, uint64_t *next, size_t max, json_t *list)
{
	struct wlb_trace_group groups[WLB_TRACE_GROUPS];
	struct wlb_trace_event calls[WLB_TRACE_CHOSEN];
	size_t count = wlb_rank_trace_read_chosen(trace, next, calls, max);
	int group_count = count > 0 ? wlb_agent_area_groups(trace, groups) : 0;
	for (size_t i = 0; i < count; i++) {
		const struct wlb_trace_event *call = &calls[i];
		if (call->group < group_count && groups[call->group].ranks > 0 && has_times(call))
			json_array_append_new(list, call_json(rank, call, &groups[call->group]));
	}
}

static int find_areas(struct wlb_agent_calls *calls, const struct wlb_node_page *page)
{
	if (calls->next != NULL)
		return 0;
	calls->areas = wlb_agent_areas_count(page);
	calls->next = calloc((size_t)calls->areas + 1, sizeof(*calls->next));
	return calls->next != NULL ? 0 : -1;
}

void wlb_agent_calls_report(struct wlb_agent_calls *calls, const struct wlb_node_page *page,
                            const struct wlb_agent_tasks *tasks, json_t *body)
{
	json_t *list = json_array();
	int rc = find_areas(calls, page);
	int share = calls->areas > 0 ? WLB_AGENT_CALLS_MAX / calls->areas : 0;
	size_t max = share < 1 ? 1 : share < WLB_TRACE_CHOSEN ? (size_t)share : WLB_TRACE_CHOSEN;
	for (int area = 0; rc == 0 && area < calls->areas && json_array_size(list) < WLB_AGENT_CALLS_MAX; area++) {
		const struct wlb_agent_task *task = wlb_agent_area_task(page, area, tasks);
		if (task != NULL)
			report_area(wlb_node_page_area(page, area), task->rank, &calls->next[area], max, list);
	}
	if (json_array_size(list) > 0)
		json_object_set(body, "calls", list);
	json_decref(list);
}

void wlb_agent_calls_free(struct wlb_agent_calls *calls)
{
	free(calls->next);
	*calls = (struct wlb_agent_calls){0};
}
