#include "worker/comm/staging.h"

#include <stdlib.h>

#include "libwlb/capacity.h"

int wlb_stage(struct wlb_device *device, struct wlb_staging *staging, const void *buffer, size_t bytes, int fill,
              void **host, struct wlb_error *error)
{
	*host = (void *)buffer;
	if (device->host_memory)
		return 0;
	if (wlb_grow(&staging->memory, &staging->capacity_bytes, bytes, 1) < 0)
		return wlb_fail(error, "out of memory for staging %zu bytes on the host", bytes);
	*host = staging->memory;
	if (fill)
		device->ops->to_host(device, *host, buffer, bytes);
	return 0;
}

void wlb_unstage(struct wlb_device *device, const void *host, void *buffer, size_t bytes)
{
	if (host != buffer)
		device->ops->to_device(device, NULL, buffer, host, bytes);
}

void wlb_staging_free(struct wlb_staging *staging)
{
	free(staging->memory);
	*staging = (struct wlb_staging){0};
}
