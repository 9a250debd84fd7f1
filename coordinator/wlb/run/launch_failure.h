/*
 * Finds whether a node failed to launch tasks of a step. srun's stderr then has one of these lines, for each task of
 * the node or for the node, and srun ends the other tasks:
 *
 *     srun: error: task 4 launch failed: Unspecified error
 *     srun: error: Task launch for StepId=12.0 failed on node n3: Communication connection failure
 *
 * Pure parser, no I/O. As first_exit.h says, a task may write such a line too.
 */
#ifndef COORDINATOR_WLB_RUN_LAUNCH_FAILURE_H
#define COORDINATOR_WLB_RUN_LAUNCH_FAILURE_H

#include <stdbool.h>

struct wlb_launch_failure {
	bool known;     /* false: the other fields have no meaning */
	int rank;       /* -1: the line names the node */
	char node[256]; /* "": the line names the rank */
	char why[128];  /* in Slurm's words, cut where they are longer */
};

/* Returns whether the line is of this form, and then sets *failure, which is unchanged otherwise. */
bool wlb_launch_failure_read(struct wlb_launch_failure *failure, const char *line);

#endif
