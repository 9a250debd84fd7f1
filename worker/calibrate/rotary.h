/* The time of rotary embeddings. */
#ifndef WORKER_CALIBRATE_ROTARY_H
#define WORKER_CALIBRATE_ROTARY_H

#include "kernels/ops.h"

/* Sets *angle to the time of the cosine and the sine of an angle (WLB_OP_ROPE_ANGLE). */
int wlb_measure_rotary(struct wlb_device *device, int head_dim, double limit_s, struct wlb_op_time *angle,
                       struct wlb_error *error);

#endif
