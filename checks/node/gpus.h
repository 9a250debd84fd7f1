/* How many GPUs the node has. */
#ifndef CHECKS_NODE_GPUS_H
#define CHECKS_NODE_GPUS_H

#include "checks/node/options.h"
#include "checks/node/report.h"

/* Counts the GPUs in a process of its own, since a process that has opened the driver cannot start others that use it.
 * Adds the finding. Returns how many are to be checked; -1 with the reason where there is none and --gpus asks for
 * none, or where this program can use no GPU (wlb_cuda_is_unusable): neither says anything of the node. */
int wlb_check_gpus(const struct wlb_check_options *options, struct wlb_check_report *report, struct wlb_error *error);

#endif
