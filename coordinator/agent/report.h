/* The agent's reports: POST /v1/runs/RUN/report of docs/api.md. */
#ifndef COORDINATOR_AGENT_REPORT_H
#define COORDINATOR_AGENT_REPORT_H

#include "coordinator/agent/tasks.h"

struct wlb_agent_report {
	const char *attempt_id;
	const char *node;
	int64_t step;
	bool goodbye;
	bool stepd_gone;
};

/* The body, with all that the coordinator does not know yet; the caller frees it. NULL: no memory. */
char *wlb_agent_report_body(const struct wlb_agent_report *report, const struct wlb_agent_tasks *tasks);

/* The coordinator took the report that was made last: nothing may have changed since. */
void wlb_agent_report_taken(struct wlb_agent_tasks *tasks);

/* Whether there is anything that it does not know. */
bool wlb_agent_report_news(const struct wlb_agent_tasks *tasks);

#endif
