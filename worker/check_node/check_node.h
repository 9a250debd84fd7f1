/* `wlb check-node`, from the options to the exit code. */
#ifndef WORKER_CHECK_NODE_CHECK_NODE_H
#define WORKER_CHECK_NODE_CHECK_NODE_H

#include "common/command.h"

extern const struct wlb_command wlb_command_check_node;

#endif
