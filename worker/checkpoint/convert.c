#include "worker/checkpoint/convert.h"

#include <math.h>
#include <string.h>

/* Files are little-endian and their numbers are copied as they are. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "safetensors and checkpoints need a little-endian host");

int wlb_stored_bytes(enum wlb_stored stored)
{
	switch (stored) {
	case WLB_STORED_BF16:
	case WLB_STORED_F16:
		return 2;
	case WLB_STORED_F32:
		return 4;
	case WLB_STORED_F64:
		return 8;
	case WLB_STORED_OTHER:
		break;
	}
	return 0;
}

/* bfloat16 is the upper half of a float32. */
static double from_bf16(uint16_t bits)
{
	uint32_t wide = (uint32_t)bits << 16;
	float value;
	memcpy(&value, &wide, sizeof(value));
	return value;
}

static double from_f16(uint16_t bits)
{
	int exponent = bits >> 10 & 0x1f;
	int fraction = bits & 0x3ff;
	double magnitude;
	if (exponent == 0x1f)
		magnitude = fraction ? NAN : INFINITY;
	else if (exponent == 0)
		magnitude = ldexp(fraction, -24);
	else
		magnitude = ldexp(fraction + 0x400, exponent - 25);
	return bits & 0x8000 ? -magnitude : magnitude;
}

static double load(enum wlb_stored stored, const char *from)
{
	uint16_t half;
	float single;
	double value;
	switch (stored) {
	case WLB_STORED_BF16:
		memcpy(&half, from, sizeof(half));
		return from_bf16(half);
	case WLB_STORED_F16:
		memcpy(&half, from, sizeof(half));
		return from_f16(half);
	case WLB_STORED_F32:
		memcpy(&single, from, sizeof(single));
		return single;
	case WLB_STORED_F64:
		memcpy(&value, from, sizeof(value));
		return value;
	case WLB_STORED_OTHER:
		break;
	}
	return NAN;
}

static int is_stored_as(enum wlb_stored stored, enum wlb_dtype dtype)
{
	switch (dtype) {
	case WLB_FLOAT32:
		return stored == WLB_STORED_F32;
	case WLB_FLOAT64:
		return stored == WLB_STORED_F64;
	case WLB_BFLOAT16:
		return stored == WLB_STORED_BF16;
	}
	return 0;
}

int wlb_convert(enum wlb_stored stored, const void *from, enum wlb_dtype dtype, void *to, int64_t count,
                struct wlb_error *error)
{
	int bytes = wlb_stored_bytes(stored);
	if (bytes == 0)
		return wlb_fail(error, "stored element type %d: it must be F64, F32, BF16 or F16", (int)stored);
	if (wlb_dtype_check(dtype, error) < 0)
		return -1;
	if (is_stored_as(stored, dtype)) {
		memcpy(to, from, (size_t)(count * bytes));
		return 0;
	}
	for (int64_t i = 0; i < count; i++)
		wlb_dtype_store(dtype, to, i, load(stored, (const char *)from + i * bytes));
	return 0;
}
