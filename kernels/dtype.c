/* Element types, which are the same for every kind of device, and closing a device of any kind. */
#include <math.h>

#include "kernels/bfloat16.h"
#include "kernels/ops.h"

size_t wlb_dtype_bytes(enum wlb_dtype dtype)
{
	switch (dtype) {
	case WLB_FLOAT32:
		return sizeof(float);
	case WLB_FLOAT64:
		return sizeof(double);
	case WLB_BFLOAT16:
		return sizeof(uint16_t);
	}
	return 0;
}

const char *wlb_dtype_name(enum wlb_dtype dtype)
{
	switch (dtype) {
	case WLB_FLOAT32:
		return "float32";
	case WLB_FLOAT64:
		return "float64";
	case WLB_BFLOAT16:
		return "bfloat16";
	}
	return "unknown";
}

int wlb_dtype_check(enum wlb_dtype dtype, struct wlb_error *error)
{
	if (wlb_dtype_bytes(dtype) != 0)
		return 0;
	return wlb_fail(error, "element type %d: it must be float32 (%d), float64 (%d) or bfloat16 (%d)", (int)dtype,
	                (int)WLB_FLOAT32, (int)WLB_FLOAT64, (int)WLB_BFLOAT16);
}

void wlb_dtype_store(enum wlb_dtype dtype, void *array_host, int64_t index, double value)
{
	switch (dtype) {
	case WLB_FLOAT32:
		((float *)array_host)[index] = (float)value;
		break;
	case WLB_FLOAT64:
		((double *)array_host)[index] = value;
		break;
	case WLB_BFLOAT16:
		((uint16_t *)array_host)[index] = wlb_bfloat16_of_double(value);
		break;
	}
}

double wlb_dtype_load(enum wlb_dtype dtype, const void *array_host, int64_t index)
{
	switch (dtype) {
	case WLB_FLOAT32:
		return ((const float *)array_host)[index];
	case WLB_FLOAT64:
		return ((const double *)array_host)[index];
	case WLB_BFLOAT16:
		return wlb_float_of_bfloat16(((const uint16_t *)array_host)[index]);
	}
	return NAN;
}

void wlb_device_close(struct wlb_device *device)
{
	if (device != NULL)
		device->ops->close(device);
}
