#include "coordinator/agent/activities.h"

#include <math.h>

#include "common/seconds.h"
#include "coordinator/agent/process.h"

/* Of a report: 64 ranks take some 30 KB, of the 1 MiB that the coordinator accepts. */
enum { GROUPS_MOST = 16, RANKS_MOST = 64 };

/* The coordinator refuses a report with numbers above these, which no rank has but any process of the user can write.
 */
static const double seconds_most = 1e7;
static const uint64_t seq_most = UINT64_C(1000000000000000), bytes_most = UINT64_C(1000000000000000000);
static const uint64_t ranks_most = 1 << 20;
static const int64_t step_most = INT64_C(1000000000000);

/* Seconds from then until now, in milliseconds; 0 where the rank wrote a time that is none. */
static json_t *age(double now_s, double since_s)
{
	double age_s = now_s - since_s;
	return json_real(age_s > 0.0 ? round(1e3 * fmin(age_s, seconds_most)) / 1e3 : 0.0);
}

static json_int_t at_most(uint64_t value, uint64_t most)
{
	return (json_int_t)(value < most ? value : most);
}

static const char *state_of(const struct wlb_agent_task *task)
{
	if (task->gone)
		return "gone";
	return wlb_process_stopped(task->pid) ? "stopped" : "running";
}

/* Whether a communicator is reported: the first ones, and that of the call which blocks the rank (-1: none does). */
static int is_reported(const struct wlb_trace_group *group, int number, int blocked_in, int reported)
{
	if (group->ranks <= 0)
		return 0;
	int left = GROUPS_MOST - reported - (blocked_in > number);
	return number == blocked_in || left > 0;
}

/* The coordinator refuses other bytes. */
static void make_printable(char *name)
{
	if (*name == '\0')
		*name = '?';
	for (; *name != '\0'; name++)
		if (*name < ' ' || *name > '~' || *name == '"' || *name == '\\')
			*name = '?';
}

/* Returns the list of communicators. *place is where the one of number `blocked_in` is in it. */
static json_t *groups_json(const struct wlb_rank_trace *trace, int blocked_in, int *place)
{
	struct wlb_trace_group groups[WLB_TRACE_GROUPS];
	int count = wlb_rank_trace_groups(trace, groups);
	json_t *list = json_array();
	for (int i = 0; i < count; i++) {
		struct wlb_trace_group *group = &groups[i];
		if (!is_reported(group, i, blocked_in, (int)json_array_size(list)))
			continue;
		if (i == blocked_in)
			*place = (int)json_array_size(list);
		make_printable(group->name);
		json_array_append_new(
			list, json_pack("[s, I, I, I]", group->name, at_most((uint64_t)group->ranks, ranks_most),
		                        at_most(group->entered, seq_most), at_most(group->left, seq_most)));
	}
	return list;
}

static json_t *call_json(const struct wlb_trace_event *call, int place, double now_s)
{
	return json_pack("{s:s, s:i, s:I, s:I, s:o}", "kind", wlb_comm_kind_name(call->kind), "group", place, "seq",
	                 at_most(call->seq, seq_most), "bytes", at_most(call->bytes, bytes_most), "for_s",
	                 age(now_s, call->blocked_s));
}

static json_t *activity_json(const struct wlb_rank_trace *trace, const struct wlb_agent_task *task)
{
	struct wlb_trace_event call;
	double now_s = wlb_now_s(), since_s, work;
	int is_blocked = wlb_rank_trace_blocked(trace, &call), place = -1;
	enum wlb_activity activity = wlb_rank_trace_activity(trace, &since_s);
	json_t *groups = groups_json(trace, is_blocked ? call.group : -1, &place);
	json_t *json = json_pack("{s:i, s:I, s:s, s:o, s:s, s:o}", "rank", task->rank, "step",
	                         at_most((uint64_t)wlb_rank_trace_step(trace, &work), (uint64_t)step_most), "activity",
	                         wlb_activity_name(activity), "for_s", age(now_s, since_s), "process", state_of(task),
	                         "groups", groups);
	if (!task->gone && wlb_process_traced(task->pid))
		json_object_set_new(json, "traced", json_true());
	if (place >= 0)
		json_object_set_new(json, "call", call_json(&call, place, now_s));
	return json;
}

static const struct wlb_agent_task *find_task(const struct wlb_agent_tasks *tasks, int rank)
{
	for (int i = 0; i < tasks->count; i++)
		if (tasks->list[i].rank == rank)
			return &tasks->list[i];
	return NULL;
}

/* Another process of the user may have written the same rank into several areas: the first one counts. */
static int is_repeated(const struct wlb_node_page *page, int area)
{
	int rank = wlb_rank_trace_rank(wlb_node_page_area(page, area)), i = 0;
	while (wlb_rank_trace_rank(wlb_node_page_area(page, i)) != rank)
		i++;
	return i < area;
}

json_t *wlb_agent_activities(const struct wlb_node_page *page, const struct wlb_agent_tasks *tasks, int *next)
{
	json_t *list = json_array();
	int areas = 0;
	while (wlb_node_page_area(page, areas) != NULL)
		areas++;
	int count = areas < RANKS_MOST ? areas : RANKS_MOST;
	for (int i = 0; i < count; i++) {
		int area = (*next + i) % areas;
		const struct wlb_rank_trace *trace = wlb_node_page_area(page, area);
		const struct wlb_agent_task *task = find_task(tasks, wlb_rank_trace_rank(trace));
		if (task != NULL && !is_repeated(page, area))
			json_array_append_new(list, activity_json(trace, task));
	}
	*next = areas > 0 ? (*next + count) % areas : 0;
	return list;
}
