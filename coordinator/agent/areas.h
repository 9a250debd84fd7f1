/* The areas of the node page, made fit for a report: what is in them any process of the user can have written, and the
 * coordinator refuses a report with a value that no rank has. */
#ifndef COORDINATOR_AGENT_AREAS_H
#define COORDINATOR_AGENT_AREAS_H

#include <jansson.h>

#include "coordinator/agent/tasks.h"
#include "coordinator/client/node_page.h"

int wlb_agent_areas_count(const struct wlb_node_page *page);

/* Returns the task whose area it is; NULL where the rank of the area is no task of the step, or has an area before this
 * one. */
const struct wlb_agent_task *wlb_agent_area_task(const struct wlb_node_page *page, int area,
                                                 const struct wlb_agent_tasks *tasks);

/* Copies the communicators of an area, as wlb_rank_trace_groups, with names of printable characters. */
int wlb_agent_area_groups(const struct wlb_rank_trace *trace, struct wlb_trace_group groups[WLB_TRACE_GROUPS]);

json_int_t wlb_agent_at_most(uint64_t value, uint64_t max);

#endif
