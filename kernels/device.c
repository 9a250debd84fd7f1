/* Functions that are the same for every kind of device: element types, and closing a device. */
#include "kernels/ops.h"

#include <math.h>
#include <string.h>

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

/* Rounds to nearest, ties to even. A double is first made a float that is odd where bits were lost, so that it is
 * rounded once in effect (Boldo & Melquiond 2008). */
static uint16_t bfloat16_of(double value)
{
	float nearest = (float)value;
	uint32_t bits;
	if (isfinite(value) && isfinite(nearest) && (double)nearest != value) {
		float toward_zero = fabs((double)nearest) > fabs(value) ? nextafterf(nearest, 0.0f) : nearest;
		memcpy(&bits, &toward_zero, sizeof(bits));
		bits |= 1;
	} else {
		memcpy(&bits, &nearest, sizeof(bits));
	}
	if (isnan(value))
		return (uint16_t)(bits >> 16 |
		                  0x40); /* quiet: the payload that is cut off must not leave an infinity */
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
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
		((uint16_t *)array_host)[index] = bfloat16_of(value);
		break;
	}
}

void wlb_device_close(struct wlb_device *device)
{
	if (device != NULL)
		device->ops->close(device);
}
