#include "coordinator/agent/activities.h"

#include <math.h>

#include "common/seconds.h"
#include "coordinator/agent/areas.h"
#include "coordinator/agent/process.h"

/* Of a report: 64 ranks take some 30 KB, of the 1 MiB that the coordinator accepts. */
enum { GROUPS_MAX = 16, RANKS_MAX = 64 };

/* The coordinator refuses a report with numbers above these, which no rank has but any process of the user can write.
 */
static const double seconds_max = 1e7, work_max = 1e30;
static const uint64_t seq_max = UINT64_C(1000000000000000), bytes_max = UINT64_C(1000000000000000000);
static const uint64_t ranks_max = 1 << 20;
static const int64_t step_max = INT64_C(1000000000000);

/* Seconds from then until now, in milliseconds; 0 where the rank wrote a time that is none. */
static json_t *age(double now_s, double since_s)
{
	double age_s = now_s - since_s;
	return json_real(age_s > 0.0 ? round(1e3 * fmin(age_s, seconds_max)) / 1e3 : 0.0);
}

static const char *word_of(char state)
{
	return state == 'T' || state == 't' ? "stopped" : "running";
}

/* Whether a communicator is reported. The first few are, and the communicator of the call that blocks the rank (-1: no
 * call does). */
static int is_reported(const struct wlb_trace_group *group, int number, int blocked_in, int reported)
{
	if (group->ranks <= 0)
		return 0;
	int left = GROUPS_MAX - reported - (blocked_in > number);
	return number == blocked_in || left > 0;
}

/* Returns the list of communicators. *place is where the one of number `blocked_in` is in it. */
static json_t *groups_json(const struct wlb_rank_trace *trace, int blocked_in, int *place)
{
	struct wlb_trace_group groups[WLB_TRACE_GROUPS];
	int count = wlb_agent_area_groups(trace, groups);
	json_t *list = json_array();
	for (int i = 0; i < count; i++) {
		struct wlb_trace_group *group = &groups[i];
		if (!is_reported(group, i, blocked_in, (int)json_array_size(list)))
			continue;
		if (i == blocked_in)
			*place = (int)json_array_size(list);
		json_array_append_new(list, json_pack("[s, I, I, I]", group->name,
		                                      wlb_agent_at_most((uint64_t)group->ranks, ranks_max),
		                                      wlb_agent_at_most(group->entered, seq_max),
		                                      wlb_agent_at_most(group->left, seq_max)));
	}
	return list;
}

static json_t *call_json(const struct wlb_trace_event *call, int place, double now_s)
{
	return json_pack("{s:s, s:i, s:I, s:I, s:o}", "kind", wlb_comm_kind_name(call->kind), "group", place, "seq",
	                 wlb_agent_at_most(call->seq, seq_max), "bytes", wlb_agent_at_most(call->bytes, bytes_max),
	                 "for_s", age(now_s, call->blocked_s));
}

/* What a check for silent data corruption has found, where it is what a rank can have found. */
static void add_corruption(const struct wlb_rank_trace *trace, json_t *json)
{
	struct wlb_trace_corruption found;
	if (!wlb_rank_trace_corruption(trace, &found) || found.step > step_max || found.suspects > (int)ranks_max ||
	    found.first > (int)ranks_max || found.other > (int)ranks_max)
		return;
	json_object_set_new(json, "corruption",
	                    json_pack("{s:I, s:i, s:i, s:i}", "step", (json_int_t)found.step, "suspects",
	                              found.suspects, "first", found.first, "other", found.other));
}

static json_t *activity_json(const struct wlb_rank_trace *trace, const struct wlb_agent_task *task)
{
	struct wlb_trace_event call;
	double now_s = wlb_now_s(), since_s, work;
	int is_blocked = wlb_rank_trace_blocked(trace, &call), place = -1;
	enum wlb_activity activity = wlb_rank_trace_activity(trace, &since_s);
	int64_t step = wlb_rank_trace_step(trace, &work);
	char state = task->gone ? '?' : wlb_process_state(task->pid);
	json_t *groups = groups_json(trace, is_blocked ? call.group : -1, &place);
	json_t *json = json_pack("{s:i, s:I, s:s, s:o, s:s, s:o}", "rank", task->rank, "step",
	                         wlb_agent_at_most((uint64_t)step, (uint64_t)step_max), "activity",
	                         wlb_activity_name(activity), "for_s", age(now_s, since_s), "process",
	                         task->gone ? "gone" : word_of(state), "groups", groups);
	if (state == 't')
		json_object_set_new(json, "traced", json_true());
	if (work > 0.0 && work <= work_max)
		json_object_set_new(json, "work", json_real(work));
	add_corruption(trace, json);
	if (place >= 0)
		json_object_set_new(json, "call", call_json(&call, place, now_s));
	return json;
}

json_t *wlb_agent_activities(const struct wlb_node_page *page, const struct wlb_agent_tasks *tasks, int *next)
{
	json_t *list = json_array();
	int areas = wlb_agent_areas_count(page);
	int count = areas < RANKS_MAX ? areas : RANKS_MAX;
	for (int i = 0; i < count; i++) {
		int area = (*next + i) % areas;
		const struct wlb_agent_task *task = wlb_agent_area_task(page, area, tasks);
		if (task != NULL)
			json_array_append_new(list, activity_json(wlb_node_page_area(page, area), task));
	}
	*next = areas > 0 ? (*next + count) % areas : 0;
	return list;
}
