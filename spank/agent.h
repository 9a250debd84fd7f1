/*
 * Starts wlb-agent(8) for a step of a run, in slurmstepd, and tells it what becomes of the tasks.
 *
 * A step without its agent runs all the same: a rank reports instead.
 */
#ifndef SPANK_AGENT_H
#define SPANK_AGENT_H

#include <sys/types.h>

#include <slurm/spank.h>

#include "spank/args.h"

struct wlb_spank_agent {
	int fd; /* the socket to it; -1: there is none */
};

/* What it is started with. */
struct wlb_spank_step {
	const char *run_id;
	const char *attempt_id;
	const char *node;
	int nodes;
	int tasks;                /* on this node */
	const char *const *names; /* of the job's variables that it finds the coordinator by; NULL-terminated */
};

/* As the job's user, and detached: slurmstepd waits for its tasks alone. Returns within args->timeout_ms; `page` is
 * then the path of the node page. -1: there is no agent. */
int wlb_spank_agent_start(struct wlb_spank_agent *agent, spank_t sp, const struct wlb_spank_args *args,
                          const struct wlb_spank_step *step, char *page, size_t size, struct wlb_error *error);

/* Never blocks, and does nothing where there is no agent. `status` is that of wait(2). */
void wlb_spank_agent_task(const struct wlb_spank_agent *agent, int rank, pid_t pid);
void wlb_spank_agent_exit(const struct wlb_spank_agent *agent, int rank, int status);
void wlb_spank_agent_end(struct wlb_spank_agent *agent);

#endif
