#include "checks/node/random.h"

uint64_t wlb_next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

void wlb_fill_random(uint64_t *words, int count, uint64_t seed, int64_t block)
{
	uint64_t state = seed + (uint64_t)block * 0xd1b54a32d192ed03u;
	for (int i = 0; i < count; i++)
		words[i] = wlb_next_random(&state);
}
