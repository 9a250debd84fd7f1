/* Megatron-LM's --rampup-batch-size: the global batch grows from a smaller one as windows are trained. */
#ifndef WORKER_DATA_BATCH_RAMP_H
#define WORKER_DATA_BATCH_RAMP_H

#include <stdint.h>

#include "libwlb/wlb.h"

enum { WLB_BATCH_RAMP_TEXT_BYTES = 64 };

/* Zeroed: the batch is the full one from the first step on. */
struct wlb_batch_ramp {
	int64_t start;     /* windows of the first steps */
	int64_t increment; /* windows by which it grows */
	int64_t windows;   /* that are trained until the batch is the full one, an equal part of them with each batch */
};

/* `full` is the batch at the end of the ramp. Returns -1 with value, rule and remedy where one is below 1, or
 * increments do not lead from start to full; a zeroed ramp passes. */
int wlb_batch_ramp_check(const struct wlb_batch_ramp *ramp, int64_t full, struct wlb_error *error);

/* Returns the windows of the step before which `consumed` were trained, by the arithmetic of Megatron-LM's
 * RampupBatchsizeNumMicroBatchesCalculator. What follows there, rounding to a multiple of micro-batch and
 * data-parallel size, is not needed here, and would make the batch depend on the layout. */
int64_t wlb_batch_ramp_at(const struct wlb_batch_ramp *ramp, int64_t full, int64_t consumed);

/* Writes "START INCREMENT WINDOWS", or "none". */
void wlb_batch_ramp_format(const struct wlb_batch_ramp *ramp, char text[WLB_BATCH_RAMP_TEXT_BYTES]);

#endif
