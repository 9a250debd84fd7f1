/* What is the same for every kind of device. */
#include "kernels/ops.h"

size_t wlb_dtype_bytes(enum wlb_dtype dtype)
{
	return dtype == WLB_FLOAT64 ? sizeof(double) : sizeof(float);
}

const char *wlb_dtype_name(enum wlb_dtype dtype)
{
	return dtype == WLB_FLOAT64 ? "float64" : "float32";
}

void wlb_device_close(struct wlb_device *device)
{
	if (device != NULL)
		device->ops->close(device);
}
