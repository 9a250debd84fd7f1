/* The calculators, one file each. Each is a program that `wlb` starts: `wlb plan` is wlb-plan. */
#ifndef PLANNER_CLI_COMMANDS_H
#define PLANNER_CLI_COMMANDS_H

#include "common/command.h"

extern const struct wlb_command wlb_command_pack;
extern const struct wlb_command wlb_command_shard;
extern const struct wlb_command wlb_command_plan;
extern const struct wlb_command wlb_command_sim;

#endif
