#include "libverdict/select.h"

static void swap(double *a, double *b)
{
	double held = *a;
	*a = *b;
	*b = held;
}

static double middle_of(double a, double b, double c)
{
	if (a < b)
		return b < c ? b : a < c ? c : a;
	return a < c ? a : b < c ? c : b;
}

/* Moves the value of rank `wanted` to its place: all before it are at most as great, all after it at least. */
static void place(double *values, int32_t count, int32_t wanted)
{
	int32_t low = 0, high = count - 1;
	while (low < high) {
		double pivot = middle_of(values[low], values[low + (high - low) / 2], values[high]);
		int32_t i = low, j = high;
		while (i <= j) {
			while (values[i] < pivot)
				i++;
			while (values[j] > pivot)
				j--;
			if (i <= j)
				swap(&values[i++], &values[j--]);
		}
		if (wanted <= j)
			high = j;
		else if (wanted >= i)
			low = i;
		else
			return;
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
