#include "tests/bench/verdicts/chance.h"

#include <math.h>

struct chance chance_of(uint64_t seed, uint64_t number)
{
	struct chance chance = {seed};
	chance.state = chance_next(&chance) ^ (number * UINT64_C(0xd1342543de82ef95));
	chance_next(&chance);
	return chance;
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

const float *chance_quantiles(void)
{
	static float quantiles[CHANCE_QUANTILES];
	static int filled;
	for (int i = 0; !filled && i < CHANCE_QUANTILES; i++)
		quantiles[i] = (float)normal_quantile((i + 0.5) / CHANCE_QUANTILES);
	filled = 1;
	return quantiles;
}
