/*
 * Processes of an attempt that its ranks have left on a node: they left the process group or the session of their rank,
 * and Slurm does not find them unless it tracks the processes of a step by cgroups. They would hold memory of GPUs in
 * the next attempt and after the run. All that ranks have started has the attempt's WLB_ATTEMPT_ID in its environment,
 * and the name of the node in SLURMD_NODENAME, which the attempt's srun lacks; what the job's script has started has no
 * WLB_ATTEMPT_ID, and what a job that a rank has submitted has started has another SLURM_JOB_ID.
 */
#ifndef COORDINATOR_AGENT_STRAYS_H
#define COORDINATOR_AGENT_STRAYS_H

#include <stdint.h>

struct wlb_agent_strays {
	const char *run_id; /* begins with the id of the job */
	const char *attempt_id;
	const char *node;
	int count; /* that were there when they were asked to end */
	int64_t until_ms;
};

/* Sends the signal to them; 0: to none, they are only counted. Returns how many there are. */
int wlb_agent_strays_signal(const struct wlb_agent_strays *strays, int number);

/* Asks those to end, by SIGTERM, that have not ended by themselves a moment later. */
void wlb_agent_strays_ask(struct wlb_agent_strays *strays);

/* Returns once they have ended; after two seconds from wlb_agent_strays_ask they are killed, and half a second later
 * what is left of them is left. */
void wlb_agent_strays_end(const struct wlb_agent_strays *strays);

#endif
