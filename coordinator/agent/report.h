/* The agent's reports: POST /v1/runs/RUN/report of docs/api.md. */
#ifndef COORDINATOR_AGENT_REPORT_H
#define COORDINATOR_AGENT_REPORT_H

#include "coordinator/agent/calls.h"
#include "coordinator/agent/steps.h"
#include "coordinator/agent/tasks.h"
#include "coordinator/agent/trainers.h"
#include "coordinator/client/node_page.h"

struct wlb_agent_report {
	const char *attempt_id;
	const char *node;
	const struct wlb_node_page *page; /* of the step, and of what the ranks do; read when the body is made */
	int *next_area;                   /* of the page, for wlb_agent_activities */
	struct wlb_agent_steps *steps;    /* how far reports have come in those of the page */
	struct wlb_agent_calls *calls;    /* and in the calls */
	const struct wlb_agent_trainers *trainers;
	bool goodbye;
	bool stepd_gone;
	int own_nodes; /* of a step that is only recorded; 0: another */
};

/* The body, with everything that the coordinator does not know yet; the caller frees it. NULL if out of memory. */
char *wlb_agent_report_body(const struct wlb_agent_report *report, const struct wlb_agent_tasks *tasks);

/* Notes that the coordinator accepted the newest report; `tasks` must not have changed since it was made. */
void wlb_agent_report_accepted(struct wlb_agent_tasks *tasks);

/* Whether there is anything that the coordinator does not know yet. */
bool wlb_agent_report_pending(const struct wlb_agent_tasks *tasks);

#endif
