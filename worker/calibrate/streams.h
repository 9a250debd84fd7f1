/* The rate at which operations go through memory, and the fixed time of an operation. */
#ifndef WORKER_CALIBRATE_STREAMS_H
#define WORKER_CALIBRATE_STREAMS_H

#include "kernels/ops.h"

/* Sets *bytes_per_s to the bytes that addition, SwiGLU, RMSNorm and AdamW read and write, by the time of all four
 * together, over vectors that no cache holds; *operation_s to the time of an operation on one element. */
int wlb_measure_streams(struct wlb_device *device, double limit_s, double *bytes_per_s, double *operation_s,
                        struct wlb_error *error);

#endif
