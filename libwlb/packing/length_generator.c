/* Generates a seeded stream of document lengths. */
#include "libwlb/wlb.h"

#include <math.h>

/* The least length is chosen so that the mean is 3,962. */
enum { KNOTS = 8, BISECTIONS = 24 };
static const double length_at[KNOTS] = {287, 646, 3227, 5784, 6110, 26070, 119836, 124913};

void wlb_lengths_init(struct wlb_lengths *lengths, uint64_t seed, double tail)
{
	lengths->state = seed;
	lengths->tail = tail >= 0.0 ? fmin(tail, 4.0) : 0.0;
}

/* SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), as a number in [0, 1). */
static double uniform(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	z ^= z >> 31;
	return (double)(z >> 11) * 0x1p-53;
}

/* low * (high / low)^t by bisection: sqrt is correctly rounded everywhere, pow is not. */
static double interpolate_geometric(double low, double high, double t)
{
	for (int i = 0; i < BISECTIONS; i++) {
		double middle = sqrt(low * high);
		t *= 2.0;
		if (t < 1.0) {
			high = middle;
		} else {
			low = middle;
			t -= 1.0;
		}
	}
	return low;
}

int64_t wlb_lengths_next(struct wlb_lengths *lengths)
{
	const double share[KNOTS] = {0.0, 0.1, 0.5, 0.9, 0.95, 1.0 - 0.01 * lengths->tail, 1.0 - 0.001 * lengths->tail,
	                             1.0};
	double u = uniform(&lengths->state);
	int k = 0;
	while (k < KNOTS - 2 && u >= share[k + 1])
		k++;
	double t = (u - share[k]) / (share[k + 1] - share[k]);
	return (int64_t)(interpolate_geometric(length_at[k], length_at[k + 1], t) + 0.5);
}
