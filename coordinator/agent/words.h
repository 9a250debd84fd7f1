/*
 * What the Slurm plugin tells the agent of its node: one word a packet of their socket.
 *
 *   task RANK PID    the rank runs as this process
 *   exit RANK CODE   it has ended, with this exit code as a shell has it: 128 + signal when it was killed
 *   end              the step is over, and slurmstepd ends too
 *
 * The socket closes without `end` when slurmstepd dies.
 */
#ifndef WLB_AGENT_WORDS_H
#define WLB_AGENT_WORDS_H

enum {
	WLB_AGENT_WORD_SIZE = 64,
	WLB_AGENT_TASKS_MOST = 65536, /* of a step on one node */
};

enum wlb_agent_word_kind {
	WLB_AGENT_WORD_UNKNOWN, /* that of a newer plugin, or none */
	WLB_AGENT_WORD_TASK,
	WLB_AGENT_WORD_EXIT,
	WLB_AGENT_WORD_END,
};

struct wlb_agent_word {
	enum wlb_agent_word_kind kind;
	int rank;  /* of task and exit */
	int value; /* the process id, or the exit code */
};

struct wlb_agent_word wlb_agent_word_parse(const char *text);

#endif
