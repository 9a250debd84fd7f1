/* The subcommands of wlb: one file each. */
#ifndef COORDINATOR_WLB_COMMANDS_H
#define COORDINATOR_WLB_COMMANDS_H

#include "common/command.h"

extern const struct wlb_command wlb_command_run;
extern const struct wlb_command wlb_command_runs;
extern const struct wlb_command wlb_command_show;
extern const struct wlb_command wlb_command_steps;
extern const struct wlb_command wlb_command_compare;
extern const struct wlb_command wlb_command_query;
extern const struct wlb_command wlb_command_report;
extern const struct wlb_command wlb_command_faults;
extern const struct wlb_command wlb_command_logs;
extern const struct wlb_command wlb_command_nodes;
extern const struct wlb_command wlb_command_top;
extern const struct wlb_command wlb_command_set;
extern const struct wlb_command wlb_command_save;
extern const struct wlb_command wlb_command_tag;
extern const struct wlb_command wlb_command_note;
extern const struct wlb_command wlb_command_stacks;
extern const struct wlb_command wlb_command_trace;
extern const struct wlb_command wlb_command_flush;
extern const struct wlb_command wlb_command_db;
extern const struct wlb_command wlb_command_doctor;

#endif
