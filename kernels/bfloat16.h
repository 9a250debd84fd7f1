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

/* A master weight is kept in two halves: the bfloat16 weight that is used, to which it is rounded, of two that are
 * equally near to the one farther from 0, and its lower 16 bits. They tell whether it was rounded up, so that the upper
 * 16 bits follow from the weight. A NaN becomes one with empty lower bits, since to round its payload up could leave a
 * number. */
struct wlb_halves {
	uint16_t weight, lower;
};

static inline struct wlb_halves wlb_split_master(float master)
{
	uint32_t bits;
	memcpy(&bits, &master, sizeof(bits));
	if (master != master)
		bits = 0x7fc00000;
	return (struct wlb_halves){.weight = (uint16_t)((bits + 0x8000) >> 16), .lower = (uint16_t)bits};
}

static inline float wlb_join_master(struct wlb_halves halves)
{
	const uint32_t bits = (uint32_t)(uint16_t)(halves.weight - (halves.lower >> 15)) << 16 | halves.lower;
	float master;
	memcpy(&master, &bits, sizeof(master));
	return master;
}

/* Returns the float that is nearest to the value on the side of 0, its last bit set where bits were lost ("round to
 * odd"): rounding it again to half as many bits or less gives what rounding the value once would (Boldo & Melquiond
 * 2008). */
static inline float wlb_float_rounded_to_odd(double value)
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
	return wlb_bfloat16_of_float(wlb_float_rounded_to_odd(value));
}

#endif
