/*
 * bfloat16 as float and back, rounded to nearest, ties to even.
 */
#ifndef CUDA_HOST_BFLOAT16_H
#define CUDA_HOST_BFLOAT16_H

#include <stdint.h>
#include <string.h>

namespace cuda_host
{
static inline float float_of_bfloat16(uint16_t number)
{
	const uint32_t bits = (uint32_t)number << 16;
	float value;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

static inline uint16_t bfloat16_of_float(float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof(bits));
	if (value != value)
		return (uint16_t)(bits >> 16 | 0x40); /* a NaN stays one */
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
} // namespace cuda_host

#endif
