/* wlb: the command of users and administrators. */
#ifndef COORDINATOR_WLB_PROGRAM_H
#define COORDINATOR_WLB_PROGRAM_H

#include "common/command.h"

/* Its commands, in the order of `wlb --help`. */
extern const struct wlb_program wlb_command_program;

#endif
