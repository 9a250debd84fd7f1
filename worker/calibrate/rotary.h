/* The time of an angle of the rotary embeddings. */
#ifndef WORKER_CALIBRATE_ROTARY_H
#define WORKER_CALIBRATE_ROTARY_H

#include "kernels/ops.h"

/* Sets *angle_s to the seconds of the cosine and the sine of an angle. */
int wlb_measure_rotary(struct wlb_device *device, int head_dim, double limit_s, double *angle_s,
                       struct wlb_error *error);

#endif
