/* What the ranks of the node do, for a report (docs/api.md): read from the areas of the node page. */
#ifndef COORDINATOR_AGENT_ACTIVITIES_H
#define COORDINATOR_AGENT_ACTIVITIES_H

#include <jansson.h>

#include "coordinator/agent/tasks.h"
#include "coordinator/client/node_page.h"

/* Returns a list of those ranks of the step that have taken an area, which the caller releases; NULL if out of memory.
 * Of a node with many ranks each report has a part of them: *next is the area with which this report begins, and
 * becomes the area with which the next report begins; 0 at first. */
json_t *wlb_agent_activities(const struct wlb_node_page *page, const struct wlb_agent_tasks *tasks, int *next);

#endif
