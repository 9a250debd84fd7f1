/* Calls of the node's ranks with their times, for a report (docs/api.md): the calls that ranks choose, of the same
 * numbers on all members of a communicator, read from the areas of the node page. */
#ifndef COORDINATOR_AGENT_CALLS_H
#define COORDINATOR_AGENT_CALLS_H

#include <jansson.h>

#include "coordinator/agent/tasks.h"
#include "coordinator/client/node_page.h"

/* Of a report, in equal parts for its ranks: 60 KB at most. */
enum { WLB_AGENT_CALLS_MAX = 512 };

/* Begins as zeros. */
struct wlb_agent_calls {
	uint64_t *next; /* [areas] the number of the first call that was not reported */
	int areas;
};

/* Adds to a report's body the calls that have ended since the report before, as "calls". Where the coordinator does not
 * accept a report, its calls are not repeated: later calls say as much. */
void wlb_agent_calls_report(struct wlb_agent_calls *calls, const struct wlb_node_page *page,
                            const struct wlb_agent_tasks *tasks, json_t *body);

void wlb_agent_calls_free(struct wlb_agent_calls *calls);

#endif
