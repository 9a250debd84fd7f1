/* Converts stored numbers to the element type of a device. */
#ifndef WORKER_CHECKPOINT_CONVERT_H
#define WORKER_CHECKPOINT_CONVERT_H

#include <stdint.h>

#include "kernels/ops.h"

/* The dtypes that can be converted to a weight; every other dtype of the format is WLB_STORED_OTHER. */
enum wlb_stored { WLB_STORED_OTHER, WLB_STORED_BF16, WLB_STORED_F16, WLB_STORED_F32, WLB_STORED_F64 };

/* Bytes of one stored element; 0 for WLB_STORED_OTHER. */
int wlb_stored_bytes(enum wlb_stored stored);

/* Converts `count` elements. float64 to float32 rounds to nearest; everything else is exact. Returns -1, with nothing
 * converted, for WLB_STORED_OTHER and for an invalid dtype. */
int wlb_convert(enum wlb_stored stored, const void *from, enum wlb_dtype dtype, void *to, int64_t count,
                struct wlb_error *error);

#endif
