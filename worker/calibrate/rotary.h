/* The time of rotary embeddings. */
#ifndef WORKER_CALIBRATE_ROTARY_H
#define WORKER_CALIBRATE_ROTARY_H

#include "kernels/ops.h"

/* Sets operations[WLB_OP_ROPE] to the time of an element, by what each of several heads adds, and
 * operations[WLB_OP_ROPE_ANGLE] to that of an angle, whose cosine and sine rope computes once for all heads of a token:
 * what remains of the time on one head; 0 where nothing remains. */
int wlb_measure_rotary(struct wlb_device *device, int head_dim, double limit_s, struct wlb_op_time *operations,
                       struct wlb_error *error);

#endif
