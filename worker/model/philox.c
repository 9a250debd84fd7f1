#include "worker/model/philox.h"

#include <math.h>

enum { ROUNDS = 10 };

void wlb_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
	uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
	uint32_t k0 = key[0], k1 = key[1];
	for (int round = 0; round < ROUNDS; round++) {
		/* The multipliers, and below the Weyl increments of the key, are those of the paper. */
		uint64_t p0 = UINT64_C(0xD2511F53) * c0;
		uint64_t p1 = UINT64_C(0xCD9E8D57) * c2;
		c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
		c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
		c1 = (uint32_t)p1;
		c3 = (uint32_t)p0;
		k0 += UINT32_C(0x9E3779B9);
		k1 += UINT32_C(0xBB67AE85);
	}
	out[0] = c0;
	out[1] = c1;
	out[2] = c2;
	out[3] = c3;
}

/* Returns 53 random bits as a number in (0, 1], whose logarithm is finite. */
static double unit(uint32_t high, uint32_t low)
{
	uint64_t bits = ((uint64_t)high << 32 | low) >> 11;
	return ((double)bits + 1.0) * 0x1p-53;
}

/* A pair of uniforms as polar coordinates: a pair of normals, elements 2 * block and 2 * block + 1. */
struct polar {
	double radius, angle;
};

static struct polar polar_of(uint64_t seed, uint64_t stream, uint64_t block)
{
	uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)stream, (uint32_t)(stream >> 32)};
	uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
	uint32_t bits[4];
	wlb_philox4x32(counter, key, bits);
	return (struct polar){sqrt(-2.0 * log(unit(bits[0], bits[1]))), 2.0 * M_PI * unit(bits[2], bits[3])};
}

/* The cosine of even numbers, the sine of odd ones. */
static double normal_of(struct polar pair, uint64_t index)
{
	return pair.radius * (index % 2 == 0 ? cos(pair.angle) : sin(pair.angle));
}

double wlb_philox_normal(uint64_t seed, uint64_t stream, uint64_t index)
{
	return normal_of(polar_of(seed, stream, index / 2), index);
}

void wlb_philox_normals(uint64_t seed, uint64_t stream, uint64_t first, int64_t count, double *out)
{
	struct polar pair = {0};
	for (int64_t i = 0; i < count; i++) {
		uint64_t index = first + (uint64_t)i;
		if (i == 0 || index % 2 == 0)
			pair = polar_of(seed, stream, index / 2);
		out[i] = normal_of(pair, index);
	}
}
