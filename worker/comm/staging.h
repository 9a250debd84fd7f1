/* Copies buffers between host memory and device memory that the transport cannot access. Private to worker/comm. */
#ifndef WORKER_COMM_STAGING_H
#define WORKER_COMM_STAGING_H

#include <stddef.h>

#include "kernels/ops.h"
#include "libwlb/wlb.h"

/* The host copy of a buffer. It grows to the largest size used and is kept. */
struct wlb_staging {
	void *memory;
	size_t capacity_bytes;
};

/* Sets *host to the memory that the transport uses for the device's `buffer`: the buffer itself where it is host
 * memory, else `staging`, with the contents of the buffer where `fill` is 1. */
int wlb_stage(struct wlb_device *device, struct wlb_staging *staging, const void *buffer, size_t bytes, int fill,
              void **host, struct wlb_error *error);
/* Copies received data from `host` to the device's `buffer`, unless they are the same memory. */
void wlb_unstage(struct wlb_device *device, const void *host, void *buffer, size_t bytes);
void wlb_staging_free(struct wlb_staging *staging);

#endif
