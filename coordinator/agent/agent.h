/*
 * The agent of a step on one node. It reports each second that the node is alive, reports the end of a rank at once,
 * and enforces the coordinator's order to end. It has one thread and ends with the step.
 */
#ifndef COORDINATOR_AGENT_AGENT_H
#define COORDINATOR_AGENT_AGENT_H

#include <stdbool.h>
#include <sys/types.h>

#include "coordinator/client/config.h"
#include "coordinator/client/node_page.h"

struct wlb_agent_options {
	const char *run_id;
	const char *attempt_id;
	const char *node;
	int nodes;                  /* of the step; the more nodes, the longer the random delay of a report may be */
	int tasks;                  /* of the step on this node */
	bool only_record;           /* nothing is ended because a rank is */
	int control_fd;             /* the socket on which the plugin sends (message.h) */
	pid_t stepd;                /* the slurmstepd that loaded the plugin */
	struct wlb_node_page *page; /* belongs to the caller */
	const char *stacks_program; /* path of wlb-stacks; NULL: no stacks are gathered */
};

/* Returns when the step has ended and its end was reported, or at most a second after it ended. Returns -1 if the agent
 * could not start. */
int wlb_agent_run(const struct wlb_agent_options *options, const struct wlb_client_config *config,
                  struct wlb_error *error);

#endif
