/* The tree that finds the first bin: against a search of all bins, and how much it compares. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "libwlb/packing/packer_spans.h"
#include "tests/bench/pack/corpus.h"

enum { MOST_BINS = 40 };

/* The first of the bins that are not taken out, by a search of all. */
static int32_t search(const struct wlb_load *loads, const int *taken, int32_t count, wlb_load_order before)
{
	int32_t first = -1;
	for (int32_t b = 0; b < count; b++)
		if (!taken[b] && (first < 0 || before(&loads[b], &loads[first])))
			first = b;
	return first;
}

static void finds_what_a_search_finds(void **state)
{
	(void)state;
	static const wlb_load_order orders[] = {wlb_less_work, wlb_more_work, wlb_fewer_tokens};
	struct wlb_bin_tree tree = {0};
	uint64_t random = 1;
	for (int trial = 0; trial < 600; trial++) {
		struct wlb_load loads[MOST_BINS] = {0};
		int taken[MOST_BINS] = {0};
		int32_t count = 1 + (int32_t)(corpus_random(&random) % MOST_BINS);
		wlb_load_order before = orders[trial % 3];
		assert_int_equal(wlb_bin_tree_init(&tree, count), 0);
		wlb_bin_tree_build(&tree, loads, count, before);
		for (int change = 0; change < 100; change++) {
			assert_int_equal(wlb_bin_tree_first(&tree), search(loads, taken, count, before));
			int32_t bin = (int32_t)(corpus_random(&random) % (uint64_t)count);
			taken[bin] = corpus_random(&random) % 4 == 0;
			loads[bin].work = (double)(corpus_random(&random) % 5);
			loads[bin].tokens = (int64_t)(corpus_random(&random) % 5);
			if (taken[bin])
				wlb_bin_tree_take(&tree, bin);
			else
				wlb_bin_tree_put(&tree, bin);
		}
	}
	wlb_bin_tree_free(&tree);
}

/* The baselines compare bins a number of times that grows with spans x log N, and not with spans x N. */
static void baselines_do_not_compare_all_bins_for_each_span(void **state)
{
	(void)state;
	enum { BINS = 2048, LOG_BINS = 11 };
	static const enum wlb_strategy strategies[] = {WLB_STRATEGY_GREEDY, WLB_STRATEGY_FIXED};
	for (int s = 0; s < 2; s++) {
		struct wlb_packer_options o;
		wlb_packer_options_init(&o, 131072, BINS);
		o.strategy = strategies[s];
		struct wlb_packer *packer = wlb_packer_new(&corpus_model, &o, NULL);
		struct corpus corpus = {0};
		wlb_lengths_init(&corpus.lengths, 1, 1.0);
		assert_non_null(packer);
		size_t count = corpus_next(&corpus, 131072, (int64_t)BINS * 131072);
		assert_non_null(wlb_packer_next(packer, corpus.batch, count, NULL));
		const struct wlb_assignment *assignment = &packer->assignment;
		assert_true(assignment->emptiest.comparisons >= BINS - 1);
		assert_true(assignment->lightest.comparisons + assignment->emptiest.comparisons <=
		            2 * (BINS + (int64_t)count * LOG_BINS));
		corpus_free(&corpus);
		wlb_packer_free(packer);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_a_search_finds),
		cmocka_unit_test(baselines_do_not_compare_all_bins_for_each_span),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
