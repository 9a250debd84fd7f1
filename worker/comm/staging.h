/* The host copy of a buffer in device memory that MPI cannot access. Private to worker/comm. */
#ifndef WORKER_COMM_STAGING_H
#define WORKER_COMM_STAGING_H

#include <stddef.h>

#include "kernels/ops.h"
#include "libwlb/wlb.h"

/* Pinned host memory. It grows to the largest size used and is kept. */
struct wlb_staging {
	void *memory;
	size_t capacity_bytes;
};

/* Reserves `bytes`; what was in it is lost. No copy from or to it may be in progress. Returns -1 if out of
 * memory. */
int wlb_staging_reserve(struct wlb_device *device, struct wlb_staging *staging, size_t bytes, struct wlb_error *error);
void wlb_staging_free(struct wlb_device *device, struct wlb_staging *staging);

#endif
