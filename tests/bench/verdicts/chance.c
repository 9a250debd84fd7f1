#include "tests/bench/verdicts/chance.h"

#include <math.h>

enum { QUANTILES = 1 << 16 };

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t next(struct chance *chance)
{
	uint64_t z = (chance->state += UINT64_C(0x9e3779b97f4a7c15));
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

struct chance chance_of(uint64_t seed, uint64_t number)
{
	struct chance chance = {seed};
	chance.state = next(&chance) ^ (number * UINT64_C(0xd1342543de82ef95));
	next(&chance);
	return chance;
}

double chance_uniform(struct chance *chance)
{
	return (double)(next(chance) >> 11) * 0x1p-53;
}

double chance_between(struct chance *chance, double low, double high)
{
	return low + (high - low) * chance_uniform(chance);
}

int32_t chance_below(struct chance *chance, int32_t below)
{
	return (int32_t)(chance_uniform(chance) * below);
}

/* Returns the value below which a share p of a normal distribution lies, by bisection of erfc. */
static double normal_quantile(double p)
{
	double low = -10.0, high = 10.0;
	for (int i = 0; i < 60; i++) {
		double middle = (low + high) / 2.0;
		if (0.5 * erfc(-middle / sqrt(2.0)) < p)
			low = middle;
		else
			high = middle;
	}
	return (low + high) / 2.0;
}

double chance_normal(struct chance *chance)
{
	static float quantiles[QUANTILES];
	static int filled;
	if (!filled) {
		for (int i = 0; i < QUANTILES; i++)
			quantiles[i] = (float)normal_quantile((i + 0.5) / QUANTILES);
		filled = 1;
	}
	return quantiles[next(chance) >> 48];
}
