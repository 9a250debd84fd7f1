#include "worker/comm/staging.h"

int wlb_staging_reserve(struct wlb_device *device, struct wlb_staging *staging, size_t bytes, struct wlb_error *error)
{
	if (bytes <= staging->capacity_bytes)
		return 0;
	wlb_staging_free(device, staging);
	staging->memory = device->ops->alloc_host(device, bytes, error);
	if (staging->memory == NULL)
		return wlb_fail_in(error, "staging on the host");
	staging->capacity_bytes = bytes;
	return 0;
}

void wlb_staging_free(struct wlb_device *device, struct wlb_staging *staging)
{
	device->ops->release_host(device, staging->memory);
	*staging = (struct wlb_staging){0};
}
