/* Stored numbers to the element type of a device. */
#ifndef WORKER_CHECKPOINT_CONVERT_H
#define WORKER_CHECKPOINT_CONVERT_H

#include "worker/checkpoint/safetensors.h"

/* Bytes of one stored element; 0 for WLB_STORED_OTHER. */
int wlb_stored_bytes(enum wlb_stored stored);
/* Of one element that it is converted to. */
int wlb_converted_bytes(enum wlb_dtype dtype);

/* Converts `count` elements. float64 to float32 rounds to nearest; everything else is exact. */
void wlb_convert(enum wlb_stored stored, const void *from, enum wlb_dtype dtype, void *to, int64_t count);

#endif
