/*
 * Finds which task of a step ended badly first. srun's stderr has a line for it,
 *
 *     srun: error: n3: task 5: Killed
 *     srun: error: n[1-2]: tasks 0-3: Exited with exit code 7
 *     srun: error: n1: tasks 0-1: Segmentation fault (core dumped)
 *
 * while the exit code of srun is the highest of all tasks, including those that srun ended. wlbd may have noticed
 * another rank before, one that MPI aborted for it. A task that was killed by SIGPIPE wrote to a task that had ended,
 * whose line may come later. Pure parser, no I/O.
 *
 * The output of tasks on stderr is in the same stream. A line of this form that a task writes is accepted: it can
 * mislead only the run of its own user.
 */
#ifndef COORDINATOR_WLB_RUN_RULES_FIRST_EXIT_H
#define COORDINATOR_WLB_RUN_RULES_FIRST_EXIT_H

#include <stdbool.h>
#include <stddef.h>

#include "coordinator/wlb/run/rules/ended_tasks.h"
#include "coordinator/wlb/run/rules/refusal.h"
#include "coordinator/wlb/run/rules/slurm_end.h"

/*
 * A fence of PMIx has ended without all ranks, since PMIxTimeout (mpi.conf) was over. Slurm's plugin writes a line for
 * it on each such node, which srun passes on:
 *
 *     slurmstepd: error:  mpi/pmix_v4: pmixp_coll_ring_reset_if_to: n2 [0]: pmixp_coll_ring.c:741: 0x7f1c: collective
 * timeout seq=1
 *
 * PMIx then fails in the ranks of the node, and they end. Which rank ends first says nothing of the cause. All zero
 * before the first line.
 */
struct wlb_fence_timeout {
	bool known;       /* false: no fence has ended so */
	char nodes[1024]; /* "n2,n4", each once */
	bool has_more;    /* more nodes than fit into `nodes` */
};

/* Returns whether the line is of this form, and then adds its node. */
bool wlb_fence_timeout_read(struct wlb_fence_timeout *timeout, const char *line);

/*
 * A node failed to launch tasks of a step. srun's stderr then has one of these lines, for each task of the node or for
 * the node, and srun ends the other tasks:
 *
 *     srun: error: task 4 launch failed: Unspecified error
 *     srun: error: Task launch for StepId=12.0 failed on node n3: Communication connection failure
 */
struct wlb_launch_failure {
	bool known;     /* false: the other fields have no meaning */
	int rank;       /* -1: the line names the node */
	char node[256]; /* "": the line names the rank */
	char why[128];  /* in Slurm's words, cut where they are longer */
};

/* Returns whether the line is of this form, and then sets *failure, which is unchanged otherwise. */
bool wlb_launch_failure_read(struct wlb_launch_failure *failure, const char *line);

struct wlb_first_exit {
	bool known; /* false: the other fields have no meaning */
	int rank;   /* the first rank that the line names */
	char node[256];
	int signal;    /* 0: it ended by itself */
	int exit_code; /* 1 to 255; 128 + signal when it was killed */
};

/* All zero before the first byte. */
struct wlb_first_exit_scan {
	struct wlb_first_exit first;
	struct wlb_fence_timeout fence;      /* known only where it ended before any task */
	struct wlb_launch_failure launch;    /* known only where it failed before any task ended */
	struct wlb_slurm_end slurm_end;      /* known only where Slurm ended the tasks before any had failed */
	struct wlb_refusal refusal;          /* of srun, or of tasks that could not execute the command */
	char last_error[256];                /* of srun before a task had ended; "": there is none */
	int ended_processes, ended_on_nodes; /* that ranks had left, as wlb-agent has found */
	bool ignore_rest;  /* tasks that end from now on were ended from outside, by the fence or with the launch */
	bool step_aborted; /* srun ends the tasks; why it does may follow, if the launch failed */
	struct wlb_ended_tasks ended;  /* all that have ended badly; not begun: nobody asks */
	unsigned step_signals;         /* how often slurmstepd has said that Slurm sent the step SIGTERM or SIGKILL */
	bool no_step;                  /* srun could not create its step, for a temporary reason: no task was started */
	bool is_slurmctld_unavailable; /* the reason is that slurmctld did not answer */
	char line[4096];
	size_t length; /* sizeof(line): too long to be a line of srun's */
};

/* Parses the next bytes of srun's stderr, split anywhere. */
void wlb_first_exit_feed(struct wlb_first_exit_scan *scan, const char *bytes, size_t count);

#endif
