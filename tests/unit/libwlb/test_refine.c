/* The exchange of spans between micro-batches: how much it computes, and the limit of tokens that it keeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "libwlb/packing/packer_spans.h"
#include "tests/bench/pack/corpus.h"

static int64_t operations(const struct wlb_assignment *assignment)
{
	return assignment->steps + assignment->lightest.comparisons + assignment->heaviest.comparisons;
}

/* Operations are counted, since time depends on the machine. */
static void takes_no_more_than_spans_and_micro_batches_ask_for(void **state)
{
	(void)state;
	enum { BINS = 4096, LOG_BINS = 12 };
	struct wlb_packer_options o;
	wlb_packer_options_init(&o, 131072, BINS);
	struct wlb_packer *packer = wlb_packer_new(&corpus_model, &o, NULL);
	struct corpus corpus = {0};
	wlb_lengths_init(&corpus.lengths, 1, 1.0);
	assert_non_null(packer);
	for (int k = 0; k < 2; k++) {
		size_t count = corpus_next(&corpus, 131072, (int64_t)BINS * 131072);
		const struct wlb_step *step = wlb_packer_next(packer, corpus.batch, count, NULL);
		assert_non_null(step);
		assert_true(wlb_step_imbalance(step) < 1.01);
		int64_t spans = (int64_t)packer->assignment.ordered;
		assert_true(operations(&packer->assignment) < 64 * (spans + BINS * LOG_BINS));
	}
	corpus_free(&corpus);
	wlb_packer_free(packer);
}

/* A chain of all spans, which every exchange goes through. */
static void ends_where_chains_are_long(void **state)
{
	(void)state;
	enum { BINS = 1000, SPANS = 20000 };
	struct wlb_assignment assignment = {0};
	assert_int_equal(wlb_assignment_init(&assignment, BINS, SPANS), 0);
	assert_int_equal(wlb_assignment_reserve(&assignment, SPANS), 0);
	for (size_t i = 0; i < SPANS; i++) {
		assignment.spans[i] = (struct wlb_assigned_span){.span.tokens = 1, .work = 1.0};
		wlb_assignment_add(&assignment, i);
	}
	wlb_bins_add(&assignment.bins, 0, SPANS, SPANS);
	wlb_assignment_refine(&assignment);
	assert_true(assignment.bins.loads[0].tokens < SPANS);
	assert_true(operations(&assignment) < 600 * (SPANS + BINS));
	wlb_assignment_free(&assignment);
}

/* Measured, and a little less for 256 tokens than for 128: the span that moves back may have more tokens. */
static double measured(const void *time, int64_t tokens)
{
	return wlb_gemm_seconds(time, tokens);
}

static void keeps_the_limit_where_more_tokens_are_less_work(void **state)
{
	(void)state;
	static const double tokens[] = {64, 128, 256, 512, 1024, 2048, 4096, 8192};
	static const double seconds[] = {10.0e-6, 10.3e-6, 10.1e-6, 11e-6, 14e-6, 30e-6, 90e-6, 320e-6};
	struct wlb_kernel_time time = {
		.q_tile = 128, .k_tile = 128, .gemm_tile = 1, .attention_pair_s = 1e-9, .gemm = {tokens, seconds, 8}};
	struct wlb_packer_options o;
	wlb_packer_options_init(&o, 8192, 8);
	o.max_length_ratio = 1.0;
	o.work = measured;
	o.work_context = &time;
	struct wlb_packer *packer = wlb_packer_new(NULL, &o, NULL);
	assert_non_null(packer);
	uint64_t random = 3;
	for (int k = 0; k < 200; k++) {
		static struct wlb_span batch[8 * 8192];
		size_t count = 0;
		for (int64_t left = 8 * 8192; left > 0; left -= batch[count++].tokens) {
			uint64_t longest = corpus_random(&random) % 20 == 0 ? 6000 : 400;
			int64_t length = (int64_t)(1 + corpus_random(&random) % longest);
			batch[count].tokens = length < left ? length : left;
		}
		const struct wlb_step *step = wlb_packer_next(packer, batch, count, NULL);
		assert_non_null(step);
		for (int32_t b = 0; b < step->micro_batches; b++)
			assert_true(step->loads[b].tokens <= 8192);
	}
	wlb_packer_free(packer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_no_more_than_spans_and_micro_batches_ask_for),
		cmocka_unit_test(ends_where_chains_are_long),
		cmocka_unit_test(keeps_the_limit_where_more_tokens_are_less_work),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
