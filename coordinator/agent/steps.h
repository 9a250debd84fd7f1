/* The steps that the ranks of the node have ended, for a report (docs/api.md): read from the areas of the node page. */
#ifndef COORDINATOR_AGENT_STEPS_H
#define COORDINATOR_AGENT_STEPS_H

#include <jansson.h>

#include "coordinator/agent/tasks.h"
#include "coordinator/client/node_page.h"

/* Of a report, in equal parts for its ranks: 330 KB at most of the 1 MiB that the coordinator accepts. */
enum { WLB_AGENT_STEPS_MAX = 256 };

/* How far the reports have come in the steps of an area: numbers of steps in its ring. */
struct wlb_agent_steps_place {
	uint64_t accepted; /* the first that the coordinator does not know */
	uint64_t reported; /* the first that the newest report does not have */
};

/* Begins as zeros. */
struct wlb_agent_steps {
	struct wlb_agent_steps_place *places; /* [areas] */
	int areas;
	int first, next; /* the area with which this report begins; and the area of the next report, once this one is
	                    accepted */
};

/* Adds to a report's body the steps that have ended since the newest accepted report, each of all ranks before the
 * next, as "steps", and as "lost_steps" the number of steps that ranks have overwritten since, or that no rank can
 * have. Without memory it adds no steps, and they are in the next report. */
void wlb_agent_steps_report(struct wlb_agent_steps *steps, const struct wlb_node_page *page,
                            const struct wlb_agent_tasks *tasks, json_t *body);
/* The coordinator has accepted the newest report. */
void wlb_agent_steps_accepted(struct wlb_agent_steps *steps);

void wlb_agent_steps_free(struct wlb_agent_steps *steps);

#endif
