#include "worker/comm/staging.h"

#include <stdlib.h>

static int grow(struct wlb_staging *staging, size_t bytes, struct wlb_error *error)
{
	if (bytes <= staging->room)
		return 0;
	size_t room = staging->room + staging->room / 2;
	if (room < bytes)
		room = bytes;
	wlb_staging_free(staging);
	staging->memory = malloc(room);
	if (staging->memory == NULL)
		return wlb_fail(error, "out of memory for staging %zu bytes on the host", bytes);
	staging->room = room;
	return 0;
}

int wlb_stage(struct wlb_device *device, struct wlb_staging *staging, const void *buffer, size_t bytes, int fill,
              void **host, struct wlb_error *error)
{
	*host = (void *)buffer;
	if (device->host_memory)
		return 0;
	if (grow(staging, bytes, error) < 0)
		return -1;
	*host = staging->memory;
	if (fill)
		device->ops->to_host(device, *host, buffer, bytes);
	return 0;
}

void wlb_unstage(struct wlb_device *device, const void *host, void *buffer, size_t bytes)
{
	if (host != buffer)
		device->ops->to_device(device, buffer, host, bytes);
}

void wlb_staging_free(struct wlb_staging *staging)
{
	free(staging->memory);
	*staging = (struct wlb_staging){0};
}
