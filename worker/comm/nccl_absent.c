/* Refuses NCCL in a build without CUDA. */
#include "worker/comm/transport.h"

int wlb_nccl_usable(struct wlb_error *error)
{
	return wlb_fail(error, "this build has no NCCL; build where nvcc and NCCL are installed");
}

const struct wlb_transport wlb_transport_nccl = {.on_queue = 1};
