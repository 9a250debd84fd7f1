/* What NVML says of the state of the GPUs of the node. */
#ifndef WORKER_CHECK_NODE_GPU_STATE_H
#define WORKER_CHECK_NODE_GPU_STATE_H

#include "worker/check_node/nvml.h"

struct wlb_gpu_states {
	int gpus, faulty;
	char fault[160]; /* of the first that is faulty */
};

/* Reads and judges the state of `count` GPUs, WLB_NVML_GPUS_MOST at most. */
void wlb_gpu_states_read(const struct wlb_nvml *nvml, unsigned count, struct wlb_gpu_states *states);

#endif
