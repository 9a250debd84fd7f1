/* The exchange of spans between micro-batches: how much it computes. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_no_more_than_spans_and_micro_batches_ask_for),
		cmocka_unit_test(ends_where_chains_are_long),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
