/* Seeded random numbers: uniform and normal. Traces have some for each rank and step, hence inline. */
#ifndef TESTS_BENCH_VERDICTS_CHANCE_H
#define TESTS_BENCH_VERDICTS_CHANCE_H

#include <stdint.h>

struct chance {
	uint64_t state;
};

/* Equal seeds and numbers give equal sequences. */
struct chance chance_of(uint64_t seed, uint64_t number);

enum { CHANCE_QUANTILES = 1 << 16 };

/* Of a normal distribution, at the middles of equal shares. */
const float *chance_quantiles(void);

/* splitmix64 (Steele, Lea, Flood 2014). */
static inline uint64_t chance_next(struct chance *chance)
{
	uint64_t z = (chance->state += UINT64_C(0x9e3779b97f4a7c15));
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* 0 to 1, without 1. */
static inline double chance_uniform(struct chance *chance)
{
	return (double)(chance_next(chance) >> 11) * 0x1p-53;
}

static inline double chance_between(struct chance *chance, double low, double high)
{
	return low + (high - low) * chance_uniform(chance);
}

/* 0 to below - 1. */
static inline int32_t chance_below(struct chance *chance, int32_t below)
{
	return (int32_t)(chance_uniform(chance) * below);
}

/* Mean 0, standard deviation 1. */
static inline double chance_normal(struct chance *chance)
{
	return chance_quantiles()[chance_next(chance) >> 48];
}

#endif
