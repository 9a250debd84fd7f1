/* Quantiles of values in any order. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "libverdict/quantile.h"

enum { MOST = 5000, TRIALS = 400 };

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double sorted_quantile(double *values, int32_t count, double share)
{
	double at = share * (count - 1);
	int32_t below = (int32_t)at;
	qsort(values, (size_t)count, sizeof(*values), compare);
	if (below == count - 1 || at == below)
		return values[below];
	return values[below] + (at - below) * (values[below + 1] - values[below]);
}

static void quantiles_are_those_of_sorted_values(void **state)
{
	(void)state;
	static const double shares[] = {0.0, 0.1, 0.3, 0.5, 0.9, 1.0};
	static double values[MOST], sorted[MOST];
	srand(1);
	for (int trial = 0; trial < TRIALS; trial++) {
		int32_t count = 1 + rand() % (trial % 2 ? 20 : MOST), kinds = trial % 3 ? RAND_MAX : 1 + rand() % 5;
		double share = shares[trial % 6];
		for (int32_t i = 0; i < count; i++)
			values[i] = sorted[i] = trial % 7 == 0 ? i / 3 : (rand() % kinds) - 2.0;
		assert_true(verdict_quantile(values, count, share) == sorted_quantile(sorted, count, share));
		/* They are the same values, in another order. */
		qsort(values, (size_t)count, sizeof(*values), compare);
		assert_memory_equal(values, sorted, (size_t)count * sizeof(*values));
	}
}

static void absurd_values_end_it(void **state)
{
	(void)state;
	static const double some[] = {1.0, INFINITY, -INFINITY, NAN};
	static double values[MOST];
	srand(2);
	for (int trial = 0; trial < TRIALS; trial++) {
		int32_t count = 1 + rand() % 100, kinds = 1 + trial % 4;
		for (int32_t i = 0; i < count; i++)
			values[i] = some[4 - kinds + rand() % kinds];
		verdict_quantile(values, count, 0.5);
	}
	for (int32_t i = 0; i < 8; i++)
		values[i] = i % 2 ? INFINITY : 1.0;
	assert_true(isinf(verdict_quantile(values, 8, 1.0)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantiles_are_those_of_sorted_values),
		cmocka_unit_test(absurd_values_end_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
