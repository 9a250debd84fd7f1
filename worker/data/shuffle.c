#include "worker/data/shuffle.h"

/* Below 4 bits a half the network has few permutations; the additional rounds of a larger domain are cheap there. */
enum { LEAST_HALF_BITS = 4 };

static const uint64_t golden_gamma = 0x9e3779b97f4a7c15;

static uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

void wlb_shuffle_init(struct wlb_shuffle *s, uint64_t seed, uint64_t epoch, int64_t count)
{
	s->count = (uint64_t)count;
	s->half_bits = LEAST_HALF_BITS;
	while (s->half_bits < 32 && s->count > UINT64_C(1) << (2 * s->half_bits))
		s->half_bits++;
	uint64_t key = mix(mix(seed + golden_gamma) + epoch * golden_gamma);
	for (int round = 0; round < WLB_SHUFFLE_ROUNDS; round++)
		s->keys[round] = mix(key += golden_gamma);
}

static uint64_t network(const struct wlb_shuffle *s, uint64_t value)
{
	uint64_t mask = (UINT64_C(1) << s->half_bits) - 1;
	uint64_t left = value >> s->half_bits, right = value & mask;
	for (int round = 0; round < WLB_SHUFFLE_ROUNDS; round++) {
		uint64_t next = left ^ (mix(right + s->keys[round]) & mask);
		left = right;
		right = next;
	}
	return left << s->half_bits | right;
}

int64_t wlb_shuffle_at(const struct wlb_shuffle *s, int64_t index)
{
	/* The loop ends: the network is a permutation, so it returns to `index`, which is below count, at the latest.
	 */
	uint64_t value = network(s, (uint64_t)index);
	while (value >= s->count)
		value = network(s, value);
	return (int64_t)value;
}
