#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "libwlb/wlb.h"

enum { SAMPLES = 1000000 };

static int by_length(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return x < y ? -1 : x > y;
}

/* Sorted lengths; the caller frees them. */
static int64_t *sample(double tail, double *mean)
{
	struct wlb_lengths lengths;
	int64_t *sorted = malloc(SAMPLES * sizeof(*sorted));
	assert_non_null(sorted);
	wlb_lengths_init(&lengths, 3, tail);
	*mean = 0.0;
	for (int i = 0; i < SAMPLES; i++) {
		sorted[i] = wlb_lengths_next(&lengths);
		*mean += (double)sorted[i] / SAMPLES;
	}
	qsort(sorted, SAMPLES, sizeof(*sorted), by_length);
	return sorted;
}

static void assert_near(double value, double wanted, double relative)
{
	if (value < wanted * (1.0 - relative) || value > wanted * (1.0 + relative))
		fail_msg("%g is not within %g of %g", value, relative, wanted);
}

static void has_the_quantiles_of_the_corpus(void **state)
{
	(void)state;
	static const struct {
		double share;
		double tokens;
	} quantiles[] = {{0.10, 646}, {0.50, 3227}, {0.90, 5784}, {0.95, 6110}, {0.99, 26070}, {0.999, 119836}};
	double mean;
	int64_t *sorted = sample(1.0, &mean);
	for (size_t q = 0; q < sizeof(quantiles) / sizeof(quantiles[0]); q++)
		assert_near((double)sorted[(size_t)(quantiles[q].share * SAMPLES)], quantiles[q].tokens, 0.02);
	assert_near(mean, 3962.0, 0.005);
	assert_true(sorted[0] >= 287);
	assert_in_range(sorted[SAMPLES - 1], 124900, 124913);
	free(sorted);
}

static void has_a_tail_as_heavy_as_asked(void **state)
{
	(void)state;
	double light_mean, heavy_mean;
	int64_t *light = sample(0.5, &light_mean), *heavy = sample(2.0, &heavy_mean);
	assert_near((double)light[(size_t)(0.995 * SAMPLES)], 26070, 0.02);
	assert_near((double)heavy[(size_t)(0.98 * SAMPLES)], 26070, 0.02);
	assert_near((double)heavy[SAMPLES / 2], 3227, 0.01);
	assert_true(light_mean < 3800.0 && heavy_mean > 4400.0);
	free(light);
	free(heavy);
}

static void brings_the_tail_into_its_range(void **state)
{
	(void)state;
	struct wlb_lengths lengths;
	wlb_lengths_init(&lengths, 1, 1000.0);
	assert_true(lengths.tail == 4.0);
	wlb_lengths_init(&lengths, 1, -1.0);
	assert_true(lengths.tail == 0.0);
	for (int i = 0; i < 100000; i++)
		assert_in_range(wlb_lengths_next(&lengths), 287, 26070);
}

/* Another compiler or machine must not give another stream. */
static void is_the_same_everywhere(void **state)
{
	(void)state;
	struct wlb_lengths lengths;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	wlb_lengths_init(&lengths, 42, 1.0);
	for (int i = 0; i < 100000; i++)
		hash = (hash ^ (uint64_t)wlb_lengths_next(&lengths)) * UINT64_C(0x100000001b3);
	if (hash != UINT64_C(0x75272c5dff334a82))
		fail_msg("0x%016llx", (unsigned long long)hash);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(has_the_quantiles_of_the_corpus),
		cmocka_unit_test(has_a_tail_as_heavy_as_asked),
		cmocka_unit_test(brings_the_tail_into_its_range),
		cmocka_unit_test(is_the_same_everywhere),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
