/*
 * bfloat16 on the host: the upper half of a float. Values are rounded to the nearest, of two that are equally near to
 * the even one; a NaN stays one.
 */
#ifndef KERNELS_BFLOAT16_H
#define KERNELS_BFLOAT16_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float wlb_float_of_bfloat16(uint16_t value)
{
	const uint32_t bits = (uint32_t)value << 16;
	float wide;
	memcpy(&wide, &bits, sizeof(wide));
	return wide;
}

static inline uint16_t wlb_bfloat16_of_float(float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof(bits));
	if (value != value)
		return (uint16_t)(bits >> 16 | 0x40); /* quiet: cutting its payload must not leave an infinity */
	/* A half of the last place that stays, or just less where that place is even. */
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Returns the float that is nearest to the value on the side of 0, its last bit set where bits were lost ("round to
 * odd"): rounding it again to half as many bits or less gives what rounding the value once would (Boldo & Melquiond
 * 2008). */
static inline float wlb_odd_float(double value)
{
	float toward_zero = (float)value;
	uint32_t bits;
	if (!isfinite(value) || !isfinite(toward_zero) || (double)toward_zero == value)
		return toward_zero;
	if (fabs((double)toward_zero) > fabs(value))
		toward_zero = nextafterf(toward_zero, 0.0f);
	memcpy(&bits, &toward_zero, sizeof(bits));
	bits |= 1;
	memcpy(&toward_zero, &bits, sizeof(bits));
	return toward_zero;
}

/* Rounds once. */
static inline uint16_t wlb_bfloat16_of_double(double value)
{
	return wlb_bfloat16_of_float(wlb_odd_float(value));
}

#endif
