/*
 * The agent of a step on one node: says each second that the node is there, at once when a rank has ended, and sees to
 * it that an order of the coordinator is obeyed. One thread; ends with the step.
 */
#ifndef COORDINATOR_AGENT_AGENT_H
#define COORDINATOR_AGENT_AGENT_H

#include <sys/types.h>

#include "coordinator/client/config.h"
#include "coordinator/client/node_page.h"

struct wlb_agent_options {
	const char *run_id;
	const char *attempt_id;
	const char *node;
	int nodes;                  /* of the step: the more there are, the longer a report may wait for its turn */
	int tasks;                  /* of the step on this node */
	int control_fd;             /* the socket that the plugin speaks through (message.h) */
	pid_t stepd;                /* the slurmstepd that the plugin is in */
	struct wlb_node_page *page; /* belongs to the caller */
};

/* Returns when the step is over and told, or at most a second later. -1: it could not even begin. */
int wlb_agent_run(const struct wlb_agent_options *options, const struct wlb_client_config *config,
                  struct wlb_error *error);

#endif
