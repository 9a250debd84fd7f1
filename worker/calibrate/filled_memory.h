/* Device memory with values in it, for the operations that are measured. */
#ifndef WORKER_CALIBRATE_FILLED_MEMORY_H
#define WORKER_CALIBRATE_FILLED_MEMORY_H

#include <stdint.h>

#include "kernels/ops.h"

/* Allocates `count` elements of that type on the device, filled with numbers in [-1, 1), because the time of an
 * operation on zeros differs. The device's release frees them. Returns NULL with the reason on failure. */
void *wlb_alloc_filled(struct wlb_device *device, enum wlb_dtype dtype, int64_t count, struct wlb_error *error);

#endif
