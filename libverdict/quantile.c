#include "libverdict/quantile.h"

#include <math.h>

static double middle_of(double a, double b, double c)
{
	if (a < b)
		return b < c ? b : a < c ? c : a;
	return a < c ? a : b < c ? c : b;
}

static void place(double *values, int32_t count, int32_t wanted);

/* Returns a value by which to part the values. Of many it is one that is likely to have the value of rank `wanted` on
 * its smaller side, close to it: found from a sample (Floyd and Rivest 1975, Algorithm 489: Select). */
static double pivot_of(const double *values, int32_t count, int32_t wanted)
{
	enum { MANY = 2048, SAMPLES = 256, MARGIN = 20 };
	double sample[SAMPLES];
	if (count < MANY)
		return middle_of(values[0], values[(count - 1) / 2], values[count - 1]);
	for (int32_t i = 0; i < SAMPLES; i++)
		sample[i] = values[(int64_t)i * count / SAMPLES];
	int32_t position = (int32_t)((int64_t)wanted * SAMPLES / count);
	position = position < SAMPLES / 2 ? position + MARGIN : position - MARGIN;
	place(sample, SAMPLES, position);
	return sample[position];
}

/* Moves the values below a bound to the front of those from `low` to `high`, without a branch on a value, which no
 * processor could predict. Returns where the others begin. */
static int32_t part(double *values, int32_t low, int32_t high, double bound)
{
	int32_t others = low;
	for (int32_t i = low; i <= high; i++) {
		double value = values[i];
		values[i] = values[others];
		values[others] = value;
		others += value < bound;
	}
	return others;
}

/* Moves the value of rank `wanted` to its place: all before it are at most as great, all after it at least. */
static void place(double *values, int32_t count, int32_t wanted)
{
	int32_t low = 0, high = count - 1;
	while (low < high) {
		double pivot = pivot_of(values + low, high - low + 1, wanted - low);
		int32_t equal = part(values, low, high, pivot);
		if (wanted < equal) {
			high = equal - 1;
			continue;
		}
		int32_t greater = part(values, equal, high, nextafter(pivot, INFINITY));
		/* No value is below a pivot that is no number, and none is above infinity. */
		if (wanted < greater || greater == low)
			return;
		low = greater;
	}
}

double verdict_quantile(double *values, int32_t count, double share)
{
	double position = share * (count - 1);
	int32_t below = (int32_t)position;
	place(values, count, below);
	if (below == count - 1 || position == below)
		return values[below];
	/* The next greater value is the least of those behind. */
	double next = values[below + 1];
	for (int32_t i = below + 2; i < count; i++)
		next = values[i] < next ? values[i] : next;
	return values[below] + (position - below) * (next - values[below]);
}
