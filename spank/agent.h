/*
 * Starts wlb-agent(8) for a step of a run, in slurmstepd, and reports to it the tasks that start and end.
 *
 * A step runs without its agent too: a rank then reports instead.
 */
#ifndef SPANK_AGENT_H
#define SPANK_AGENT_H

#include <stdbool.h>
#include <sys/types.h>

#include <slurm/spank.h>

#include "spank/args.h"

struct wlb_spank_agent {
	int fd;         /* the socket to the agent; -1: there is none */
	int process_fd; /* of the agent's process; -1: the kernel has no such descriptors */
	int tasks_left; /* that have not ended */
	char node[256];
};

/* What the agent is started with. */
struct wlb_spank_step {
	const char *run_id;
	const char *attempt_id;
	const char *node;
	int nodes;
	int tasks;                /* on this node */
	bool is_own;              /* own_step.h */
	const char *const *names; /* of the job's variables that name the coordinator; NULL-terminated */
};

/* Starts the agent as the job's user, and detached, since slurmstepd waits only for its tasks. Returns within
 * args->agent_timeout_ms; `page` is then the path of the node page. -1: no agent runs. */
int wlb_spank_agent_start(struct wlb_spank_agent *agent, spank_t sp, const struct wlb_spank_args *args,
                          const struct wlb_spank_step *step, char *page, size_t size, struct wlb_error *error);

/* These two do nothing where there is no agent. `status` is that of wait(2). The last task's exit also ends the agent.
 */
void wlb_spank_agent_task(const struct wlb_spank_agent *agent, int rank, pid_t pid);
void wlb_spank_agent_exit(struct wlb_spank_agent *agent, int rank, int status);

/* Ends the agent, and waits until it has ended, for 3.5 s at most, which only processes that ranks have left take: with
 * proctrack/cgroup and cgroup/v2 it is in a cgroup of the step. Once the tasks have ended Slurm 22.05 to 24.11 kills
 * it; Slurm 25.05 and later waits for it up to UnkillableStepTimeout, and then drains the node. Only after that does
 * Slurm call slurm_spank_exit. */
void wlb_spank_agent_end(struct wlb_spank_agent *agent);

#endif
