#include "libverdict/select.h"

#include <math.h>

static double middle_of(double a, double b, double c)
{
	if (a < b)
		return b < c ? b : a < c ? c : a;
	return a < c ? a : b < c ? c : b;
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
		double pivot = middle_of(values[low], values[low + (high - low) / 2], values[high]);
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
	double at = share * (count - 1);
	int32_t below = (int32_t)at;
	place(values, count, below);
	if (below == count - 1 || at == below)
		return values[below];
	/* The next greater value is the least of those behind. */
	double next = values[below + 1];
	for (int32_t i = below + 2; i < count; i++)
		next = values[i] < next ? values[i] : next;
	return values[below] + (at - below) * (next - values[below]);
}
