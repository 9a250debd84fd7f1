/* What NVML says of the state of the GPUs of the node. */
#ifndef CHECKS_NODE_GPU_STATE_H
#define CHECKS_NODE_GPU_STATE_H

#include "checks/node/nvml.h"

struct wlb_gpu_states {
	int gpus, faulty;  /* of those that this process may see */
	int links, active; /* of NVLink, and those that are active, of the GPU that has most */
	char fault[160];   /* of the first that is faulty */
};

/* Reads and judges the state of `count` GPUs, WLB_NVML_GPUS_MOST at most. Those that Slurm keeps from the job in which
 * the check runs (ConstrainDevices), which NVML counts but does not show, are left out. A GPU fails that has fewer
 * active links of NVLink than another one or than `nvlinks`. That none of them is active is no fault by itself: NVML
 * reports the same for cards in slots (PCIe) which have links, but no bridge to another card. */
void wlb_gpu_states_read(const struct wlb_nvml *nvml, unsigned count, int nvlinks, struct wlb_gpu_states *states);

#endif
