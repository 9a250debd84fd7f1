#include "coordinator/agent/options.h"

#include "coordinator/agent/agent.h"
#include "coordinator/agent/message.h"

enum { NODES_MAX = 65533 };

#define FIELD(name) offsetof(struct wlb_agent_options, name)

static const struct wlb_option options[] = {
	{WLB_OPTION(TEXT, "run", FIELD(run_id), "ID", "the run for which it reports"), .required = true},
	{WLB_OPTION(TEXT, "attempt", FIELD(attempt_id), "UUID", "the attempt for which it reports"), .required = true},
	{WLB_OPTION(TEXT, "node", FIELD(node), "NAME", "Slurm's name of this node"), .required = true},
	{WLB_OPTION(INT, "nodes", FIELD(nodes), "N",
                    "nodes of the step; when one event makes all of them report, the reports are distributed over one "
                    "millisecond for every 10 nodes"),
         .required = true, .min = 1, .max = NODES_MAX},
	{WLB_OPTION(INT, "tasks", FIELD(tasks), "N", "tasks of the step on this node"), .required = true, .min = 1,
         .max = WLB_AGENT_TASKS_MAX},
	{WLB_OPTION(FLAG, "only-record", FIELD(only_record), NULL,
                    "the step is only recorded: none of its processes is ended because a rank has ended")},
	{WLB_OPTION(VERSION, "version", 0, NULL, "print the version and exit")},
};

const struct wlb_option_table wlb_agent_option_table = {
	.command = "wlb-agent",
	.about = "Reports for one node of a step of a run. spank_wlb.so starts it, with a socket to itself as standard "
		 "input; see wlb-agent(8).",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};
