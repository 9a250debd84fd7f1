/*
 * Gathers the stacks of the ranks of the node when the coordinator asks for them, and sends them to it, in a child
 * process: reports go on meanwhile. The child ends within 12 s, is killed where it does not, and ends with the agent.
 */
#ifndef COORDINATOR_AGENT_GATHERING_H
#define COORDINATOR_AGENT_GATHERING_H

#include <stdint.h>
#include <sys/types.h>

#include "coordinator/agent/trainers.h"
#include "coordinator/client/config.h"
#include "coordinator/client/node_page.h"
#include "coordinator/client/reply.h"

/* Begins with the first members set; the texts, the page and the configuration are the caller's. */
struct wlb_agent_gathering {
	const char *program; /* path of wlb-stacks; NULL: nothing is gathered */
	const char *run_id, *attempt_id, *node;
	const struct wlb_node_page *page;
	const struct wlb_client_config *config;

	pid_t child;         /* 0: none */
	int64_t deadline_ms; /* of the child */
	int64_t newest_id;   /* that was asked for */
};

/* Returns the number that a reply to a report asks stacks for; 0: it asks for none. */
int64_t wlb_agent_wanted_stacks(const struct wlb_reply *reply);

/* Begins in a child. Does nothing where that number, or a greater one, was asked for before, or a child is at work. */
void wlb_agent_gathering_begin(struct wlb_agent_gathering *gathering, const struct wlb_agent_trainers *trainers,
                               int64_t stacks_id);

/* Notes that the child has ended, and kills it after its deadline. */
void wlb_agent_gathering_check(struct wlb_agent_gathering *gathering);

/* Kills the child. */
void wlb_agent_gathering_end(struct wlb_agent_gathering *gathering);

#endif
