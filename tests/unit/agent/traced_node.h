/* A node whose ranks write areas of a node's page, as the tests of agent's reports read them. */
#ifndef TESTS_UNIT_AGENT_TRACED_NODE_H
#define TESTS_UNIT_AGENT_TRACED_NODE_H

#include <jansson.h>

#include "coordinator/agent/tasks.h"
#include "coordinator/client/node_page.h"

enum { TRACED_RANKS_MAX = 600, TRACED_FIRST_RANK = 4 };

struct traced_node {
	struct wlb_node_page *page;
	int page_fd;
	struct wlb_rank_trace *areas[TRACED_RANKS_MAX];
	struct wlb_agent_tasks tasks;
};

/* Opens a node with `ranks` ranks, at most TRACED_RANKS_MAX, from TRACED_FIRST_RANK on, without groups. A failure
 * fails the test. Close it with traced_node_close. */
void traced_node_open(struct traced_node *node, int ranks);
void traced_node_close(struct traced_node *node);

/* Compares a report's body with its expected text, and releases it. */
void assert_body(json_t *body, const char *expected);

#endif
