/* The device that a rank computes with. */
#ifndef WORKER_TRAIN_DEVICE_H
#define WORKER_TRAIN_DEVICE_H

#include "worker/launch/launch.h"
#include "worker/launch/options.h"

/* Opens the device and checks that it has all operations that training needs. Gradients are summed in `main_grads`:
 * bf16 only with the element type bfloat16. threads 0: the CPUs that this process may use, divided by the ranks of its
 * node. Returns NULL with the reason on failure. */
struct wlb_device *wlb_open_device(const struct wlb_launch *launch, enum wlb_device_kind kind, enum wlb_dtype dtype,
                                   enum wlb_main_grads main_grads, int threads, struct wlb_error *error);

/* Returns 1 where a device that could not be opened is a GPU of this node that does not work: another node, or a later
 * attempt, may not meet this. Returns 0 where what was asked for is wrong, such as a GPU of a node without any, or one
 * for which the program has no kernels. */
int wlb_is_gpu_at_fault(const struct wlb_launch *launch, enum wlb_device_kind kind, enum wlb_dtype dtype);

/* Returns the number of this rank's GPU among those that it sees: the ranks of a node take them in turn, so that each
 * has its own where there are as many, also where the launcher lets each see only one. */
int wlb_own_gpu(const struct wlb_launch *launch);

/* How many steps may be unread when the next one begins. 1 where the device computes beside the host, so that it has
 * work while the host reads and reports a step. 0 where its operations and the transport block the host anyway: reading
 * later would only delay the report. */
int wlb_queue_depth(const struct wlb_device *device);

#endif
