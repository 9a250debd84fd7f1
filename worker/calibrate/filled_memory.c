#include "worker/calibrate/filled_memory.h"

#include <stdlib.h>

/* Elements of the pattern, which is copied repeatedly, so that filling a large buffer takes little time. */
enum { PATTERN = 1 << 16 };

static void fill(struct wlb_device *device, size_t bytes, char *memory, int64_t count, const void *pattern_host)
{
	for (int64_t first = 0; first < count; first += PATTERN) {
		int64_t part = count - first < PATTERN ? count - first : PATTERN;
		device->ops->to_device(device, NULL, memory + (size_t)first * bytes, pattern_host,
		                       (size_t)part * bytes);
	}
}

void *wlb_alloc_filled(struct wlb_device *device, enum wlb_dtype dtype, int64_t count, struct wlb_error *error)
{
	size_t bytes = wlb_dtype_bytes(dtype);
	void *pattern_host = calloc(PATTERN, bytes);
	if (pattern_host == NULL) {
		wlb_fail(error, "out of memory for %zu bytes of the host", PATTERN * bytes);
		return NULL;
	}
	uint32_t state = 1; /* a linear congruential generator (Numerical Recipes) */
	for (int64_t i = 0; i < PATTERN; i++) {
		state = state * 1664525u + 1013904223u;
		wlb_dtype_store(dtype, pattern_host, i, (double)state / 2147483648.0 - 1.0);
	}
	char *memory = device->ops->alloc(device, (size_t)count * bytes, error);
	if (memory != NULL)
		fill(device, bytes, memory, count, pattern_host);
	/* to_device may still read the pattern. */
	if (memory != NULL && device->ops->synchronize(device, error) < 0) {
		device->ops->release(device, memory);
		memory = NULL;
	}
	free(pattern_host);
	return memory;
}
