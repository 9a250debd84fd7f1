/* The command `wlb-worker gpus`, and a GPU as JSON. */
#ifndef WORKER_TRAIN_GPUS_H
#define WORKER_TRAIN_GPUS_H

#include <jansson.h>

#include "common/command.h"
#include "kernels/ops.h"

/* {"model":"...","memory_bytes":N,"driver":"...","driver_cuda":"13.0","cuda":"13.0"}; the caller releases it. NULL if
 * out of memory. */
json_t *wlb_gpu_json(const struct wlb_gpu *gpu);

extern const struct wlb_command wlb_worker_gpus;

#endif
