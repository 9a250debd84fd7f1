#include "coordinator/agent/areas.h"

int wlb_agent_areas_count(const struct wlb_node_page *page)
{
	int count = 0;
	while (wlb_node_page_area(page, count) != NULL)
		count++;
	return count;
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
	while (i < area && wlb_rank_trace_rank(wlb_node_page_area(page, i)) != rank)
		i++;
	return i < area;
}

const struct wlb_agent_task *wlb_agent_area_task(const struct wlb_node_page *page, int area,
                                                 const struct wlb_agent_tasks *tasks)
{
	const struct wlb_agent_task *task = find_task(tasks, wlb_rank_trace_rank(wlb_node_page_area(page, area)));
	return task != NULL && !is_repeated(page, area) ? task : NULL;
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

int wlb_agent_area_groups(const struct wlb_rank_trace *trace, struct wlb_trace_group groups[WLB_TRACE_GROUPS])
{
	int count = wlb_rank_trace_groups(trace, groups);
	for (int i = 0; i < count; i++)
		make_printable(groups[i].name);
	return count;
}

json_int_t wlb_agent_at_most(uint64_t value, uint64_t max)
{
	return (json_int_t)(value < max ? value : max);
}
