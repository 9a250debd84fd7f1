/* Refuses commands that do something else as the ranks of a step than they do alone. */
#ifndef COORDINATOR_WLB_RUN_COMMAND_CHECK_COMMAND_H
#define COORDINATOR_WLB_RUN_COMMAND_CHECK_COMMAND_H

#include "coordinator/wlb/run/state/state.h"
#include "libwlb/wlb.h"

/* Returns -1, with the remedy, where the command would start the ranks by itself in each of several tasks (mpirun,
 * srun), or where it, or --srun-args, names a pipe of the shell (a process substitution), which no rank can open and
 * which can be read once; or where --for names a trainer and the command cannot be told its layout by words at its end.
 * The job's tasks are known. */
int wlb_run_check_command(const struct wlb_run *run, struct wlb_error *error);

#endif
