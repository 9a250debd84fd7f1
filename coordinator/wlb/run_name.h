/* The argument RUN of subcommands: a run's name, or `last`, the newest run of the user who asks. */
#ifndef COORDINATOR_WLB_RUN_NAME_H
#define COORDINATOR_WLB_RUN_NAME_H

#include "common/command.h"

enum { WLB_RUN_NAME_BYTES = 64 };

/* What --help says of the argument. */
#define WLB_RUN_NAME_HELP                                                                                              \
	"a job's id, 15_2 of an array, or ID.2 for a job's second 'wlb run'; last: your newest run; 'wlb runs' lists " \
	"them"

/* Sets `name` to the run's, which may be put into the path of a request; asks the coordinator for `last`. Returns
 * WLB_EXIT_DONE, else the exit code of the command. */
int wlb_run_name_find(const char *given, char name[WLB_RUN_NAME_BYTES], struct wlb_error *error);

#endif
