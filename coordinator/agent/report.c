#include "coordinator/agent/report.h"

#include <jansson.h>

#include "common/clock.h"
#include "common/json_text.h"
#include "coordinator/agent/activities.h"

/* Whether it is reported as an exit: how it ended is known. */
static bool has_exit(const struct wlb_agent_task *task)
{
	return task->code >= 0 && !task->exit_reported;
}

/* Whether it is reported as lost: it failed, or it is not known how it ended. A wlbd that reads no `exits` uses this.
 */
static bool has_loss(const struct wlb_agent_task *task)
{
	return (task->code > 0 || task->lost) && !task->loss_reported;
}

static int lowest_rank(const struct wlb_agent_tasks *tasks)
{
	int lowest = tasks->list[0].rank;
	for (int i = 1; i < tasks->count; i++)
		if (tasks->list[i].rank < lowest)
			lowest = tasks->list[i].rank;
	return lowest;
}

static json_t *report_object(const struct wlb_agent_report *report, const struct wlb_agent_tasks *tasks)
{
	json_t *ranks = json_array(), *exits = json_array(), *lost = json_array();
	for (int i = 0; i < tasks->count; i++) {
		const struct wlb_agent_task *task = &tasks->list[i];
		json_array_append_new(ranks, json_integer(task->rank));
		if (has_exit(task))
			json_array_append_new(exits, json_pack("{s:i, s:f, s:i}", "rank", task->rank, "time",
			                                       task->gone_s, "code", task->code));
		if (has_loss(task))
			json_array_append_new(lost, json_pack("{s:i, s:f}", "rank", task->rank, "time", task->gone_s));
	}
	json_t *body = json_pack("{s:s, s:s, s:o, s:i, s:o, s:I, s:o, s:o, s:b, s:b}", "attempt_id", report->attempt_id,
	                         "source", "node", "node", wlb_json_text(report->node), "rank", lowest_rank(tasks),
	                         "ranks", ranks, "step", (json_int_t)wlb_node_page_step(report->page), "lost_ranks",
	                         lost, "exits", exits, "goodbye", report->goodbye, "agent", true);
	json_t *activities = wlb_agent_activities(report->page, tasks, report->next_area);
	bool has_activities = json_array_size(activities) > 0;
	if (has_activities)
		json_object_set(body, "activities", activities);
	json_decref(activities);
	json_t *processes = wlb_agent_trainers_report(report->trainers, !has_activities, wlb_clock_ms());
	if (processes != NULL)
		json_object_set_new(body, "processes", processes);
	wlb_agent_steps_report(report->steps, report->page, tasks, body);
	wlb_agent_calls_report(report->calls, report->page, tasks, body);
	if (report->own_nodes > 0)
		json_object_set_new(body, "own_nodes", json_integer(report->own_nodes));
	if (report->stepd_gone)
		json_object_set_new(body, "stepd", json_string("gone"));
	return body;
}

char *wlb_agent_report_body(const struct wlb_agent_report *report, const struct wlb_agent_tasks *tasks)
{
	json_t *body = report_object(report, tasks);
	/* A time since 1970 has its microseconds in 16 digits; 0.412 would have 17. */
	char *text = body != NULL ? json_dumps(body, JSON_COMPACT | JSON_REAL_PRECISION(16)) : NULL;
	json_decref(body);
	return text;
}

void wlb_agent_report_accepted(struct wlb_agent_tasks *tasks)
{
	for (int i = 0; i < tasks->count; i++) {
		struct wlb_agent_task *task = &tasks->list[i];
		task->exit_reported = task->exit_reported || has_exit(task);
		task->loss_reported = task->loss_reported || has_loss(task);
	}
}

bool wlb_agent_report_pending(const struct wlb_agent_tasks *tasks)
{
	for (int i = 0; i < tasks->count; i++)
		if (has_exit(&tasks->list[i]) || has_loss(&tasks->list[i]))
			return true;
	return false;
}
