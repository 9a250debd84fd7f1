/*
 * Starts wlb-agent(8) for a step of a run, in slurmstepd, and reports to it the tasks that start and end.
 *
 * A step runs without its agent too: a rank then reports instead.
 */
#ifndef SPANK_AGENT_H
#define SPANK_AGENT_H

#include <sys/types.h>

#include <slurm/spank.h>

#include "spank/args.h"

struct wlb_spank_agent {
	int fd; /* the socket to the agent; -1: there is none */
};

/* What the agent is started with. */
struct wlb_spank_step {
	const char *run_id;
	const char *attempt_id;
	const char *node;
	int nodes;
	int tasks;                /* on this node */
	const char *const *names; /* of the job's variables that name the coordinator; NULL-terminated */
};

/* Starts the agent as the job's user, and detached, since slurmstepd waits only for its tasks. Returns within
 * args->timeout_ms; `page` is then the path of the node page. -1: no agent runs. */
int wlb_spank_agent_start(struct wlb_spank_agent *agent, spank_t sp, const struct wlb_spank_args *args,
                          const struct wlb_spank_step *step, char *page, size_t size, struct wlb_error *error);

/* Never blocks, and does nothing where there is no agent. `status` is that of wait(2). */
void wlb_spank_agent_task(const struct wlb_spank_agent *agent, int rank, pid_t pid);
void wlb_spank_agent_exit(const struct wlb_spank_agent *agent, int rank, int status);
void wlb_spank_agent_end(struct wlb_spank_agent *agent);

#endif
