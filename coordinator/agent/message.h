/*
 * What the Slurm plugin tells the agent of its node: one message in each packet of their socket.
 *
 *   task RANK PID    the rank runs as this process
 *   exit RANK CODE   it has ended, with this exit code as a shell has it: 128 + signal when it was killed
 *   end              the step is over, and slurmstepd ends too
 *
 * The socket closes without `end` when slurmstepd dies.
 */
#ifndef COORDINATOR_AGENT_MESSAGE_H
#define COORDINATOR_AGENT_MESSAGE_H

enum {
	WLB_AGENT_MESSAGE_SIZE = 64,
	WLB_AGENT_TASKS_MOST = 4096, /* of a step on one node; a report has no more */
};

enum wlb_agent_message_kind {
	WLB_AGENT_MESSAGE_UNKNOWN, /* that of a newer plugin, or none */
	WLB_AGENT_MESSAGE_TASK,
	WLB_AGENT_MESSAGE_EXIT,
	WLB_AGENT_MESSAGE_END,
};

struct wlb_agent_message {
	enum wlb_agent_message_kind kind;
	int rank;  /* of task and exit */
	int value; /* the process id, or the exit code */
};

struct wlb_agent_message wlb_agent_message_parse(const char *text);

#endif
