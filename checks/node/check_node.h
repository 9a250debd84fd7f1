/* `wlb check-node`, from the options to the exit code. */
#ifndef CHECKS_NODE_CHECK_NODE_H
#define CHECKS_NODE_CHECK_NODE_H

#include "common/command.h"

extern const struct wlb_command wlb_command_check_node;

#endif
