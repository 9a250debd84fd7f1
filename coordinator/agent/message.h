/*
 * The messages of the Slurm plugin to the agent of its node: one in each packet of their socket.
 *
 *   task RANK PID    the rank runs as this process
 *   exit RANK CODE   the rank has ended, with this exit code as in a shell: 128 + signal if it was killed
 *   end              the step is over, and slurmstepd ends too
 *
 * The agent sends one back before it ends where there is something to say:
 *
 *   ended COUNT      so many processes that ranks had left on the node were ended
 *
 * The socket closes without `end` when slurmstepd dies.
 */
#ifndef COORDINATOR_AGENT_MESSAGE_H
#define COORDINATOR_AGENT_MESSAGE_H

enum {
	WLB_AGENT_MESSAGE_SIZE = 64,
	WLB_AGENT_TASKS_MAX = 4096, /* of a step on one node; a report holds no more */
};

enum wlb_agent_message_kind {
	WLB_AGENT_MESSAGE_UNKNOWN, /* a message of a newer plugin, or no message */
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
