/* The subcommands of wlb-data. */
#ifndef WORKER_DATA_COMMANDS_H
#define WORKER_DATA_COMMANDS_H

#include "common/command.h"

extern const struct wlb_command wlb_data_command_build;
extern const struct wlb_command wlb_data_command_info;

#endif
