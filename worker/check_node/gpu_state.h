/* What the driver says of the GPUs of the node. */
#ifndef WORKER_CHECK_NODE_GPU_STATE_H
#define WORKER_CHECK_NODE_GPU_STATE_H

#include "worker/check_node/report.h"

/* Adds the finding "nvml". Returns -1 with the reason where no process can be started. */
int wlb_check_gpu_state(struct wlb_check_report *report, struct wlb_error *error);

#endif
