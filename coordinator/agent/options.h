/* The options of wlb-agent. */
#ifndef COORDINATOR_AGENT_OPTIONS_H
#define COORDINATOR_AGENT_OPTIONS_H

#include "common/options.h"

/* Fills run_id, attempt_id, node, nodes, tasks and only_record of struct wlb_agent_options (agent.h). */
extern const struct wlb_option_table wlb_agent_option_table;

#endif
