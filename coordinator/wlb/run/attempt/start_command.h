/* The command of an attempt: that of the user, with the options of a launcher (launcher.h) for the nodes of the
 * attempt, and those of a trainer (trainer.h) for its layout; and where its ranks meet (rendezvous.h). */
#ifndef COORDINATOR_WLB_RUN_ATTEMPT_START_COMMAND_H
#define COORDINATOR_WLB_RUN_ATTEMPT_START_COMMAND_H

#include "coordinator/wlb/run/state/state.h"

/* Where the command is a launcher, a node gets one task, if the user has not said otherwise. */
void wlb_run_launcher_tasks(struct wlb_run *run);

/* Refuses a launcher that no attempt could start, before anything is started. */
int wlb_run_check_launcher(const struct wlb_run *run, struct wlb_error *error);

/* Sets rendezvous and command of the attempt, and prints the command where it is not the user's. */
int wlb_run_start_command(const struct wlb_run *run, struct wlb_attempt *attempt, struct wlb_error *error);

#endif
