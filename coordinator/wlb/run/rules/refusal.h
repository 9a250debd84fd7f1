/*
 * Finds whether srun or a node refused what it was asked for, as it would each time: an option that srun does not know,
 * more CPUs than the job has, a command that does not exist. srun's stderr then has one of these lines:
 *
 *     srun: error: Unable to create step for job 12: More processors requested than permitted
 *     srun: unrecognized option '--frobnicate'
 *     srun: error: Invalid --exclusive specification
 *     slurmstepd: error: execve(): /no/such/program: No such file or directory
 *
 * What may pass, such as nodes that are busy, is no refusal. Pure parser, no I/O. As first_exit.h says, a task may
 * write such a line too.
 */
#ifndef COORDINATOR_WLB_RUN_RULES_REFUSAL_H
#define COORDINATOR_WLB_RUN_RULES_REFUSAL_H

#include <stdbool.h>

struct wlb_refusal {
	bool known;         /* false: the other fields have no meaning */
	char why[192];      /* in Slurm's words, cut where they are longer */
	const char *remedy; /* static */
	char plugin[256];   /* the last line of WLB's plugin in srun, which may be why it fails */
	int failed_tasks;   /* that could not execute the command; 0: srun made no step, or ended it before */
};

/* Takes the line where it says so; the first one counts, and of tasks each is counted. */
void wlb_refusal_read(struct wlb_refusal *refusal, const char *line);

#endif
