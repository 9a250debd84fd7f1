/*
 * Finds whether Slurm itself ended the tasks of a step, as its rules or a user told it to. srun's stderr has one of
 * these lines before the first task ends:
 *
 *     srun: First task exited 3s ago
 *     srun: forcing job termination
 *     slurmstepd-n1: error: *** STEP 12.0 ON n1 CANCELLED AT 2026-11-20T12:00:00 DUE TO TIME LIMIT ***
 *
 * The first is srun's --wait, which a site may set by WaitTime; the second follows a signal to srun. Pure parser, no
 * I/O. As first_exit.h says, a task may write such a line too.
 */
#ifndef COORDINATOR_WLB_RUN_RULES_SLURM_END_H
#define COORDINATOR_WLB_RUN_RULES_SLURM_END_H

#include <stdbool.h>

struct wlb_slurm_end {
	bool known;      /* false: the other fields have no meaning */
	bool is_certain; /* false: a rank may have called MPI_Abort, upon which PMIx has Slurm cancel the step */
	char why[192];
};

/* Whether slurmstepd says that Slurm ends the step or its job, for whatever reason. The word CANCELLED alone, which a
 * command may log, does not say so. */
bool wlb_slurm_end_is_cancelled(const char *line);

/* Returns whether the line says so, and then sets *end, which is unchanged otherwise. A step that Slurm ends because a
 * task failed or a node was lost is none. */
bool wlb_slurm_end_read(struct wlb_slurm_end *end, const char *line);

#endif
