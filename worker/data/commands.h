/* wlb-data: makes datasets and prints facts about them. `wlb data` starts it. */
#ifndef WORKER_DATA_COMMANDS_H
#define WORKER_DATA_COMMANDS_H

#include "common/command.h"

/* Its subcommands, in the order of `wlb data --help`. */
extern const struct wlb_program wlb_data_program;

#endif
