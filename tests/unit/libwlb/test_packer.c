/* Properties of every strategy over random streams. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "books.h"
#include "tests/bench/pack/corpus.h"

static struct wlb_packer *packer_of(const struct wlb_packer_options *options)
{
	struct wlb_error error;
	struct wlb_packer *packer = wlb_packer_new(&corpus_model, options, &error);
	if (packer == NULL)
		fail_msg("%s", error.message);
	return packer;
}

static const struct wlb_step *step_of(struct wlb_packer *packer, const struct wlb_span *batch, size_t count)
{
	struct wlb_error error;
	const struct wlb_step *step = wlb_packer_next(packer, batch, count, &error);
	if (step == NULL)
		fail_msg("%s", error.message);
	return step;
}

static int64_t max_tokens_of(const struct wlb_packer_options *o)
{
	if (o->strategy == WLB_STRATEGY_PLAIN || o->strategy == WLB_STRATEGY_FIXED)
		return o->seq_length;
	if (o->strategy == WLB_STRATEGY_DYNAMIC)
		return INT64_MAX;
	return (int64_t)((double)o->seq_length * o->max_length_ratio);
}

static int32_t delay_bound_of(const struct wlb_packer_options *o)
{
	if (o->strategy == WLB_STRATEGY_GREEDY)
		return -1;
	return o->strategy == WLB_STRATEGY_BALANCED ? o->max_delay_steps : 0;
}

/* Lengths of every kind: none, one, the window, far above it, and any between, the sum within the batch. */
static size_t any_batch(uint64_t *random, struct wlb_span *batch, size_t most, const struct wlb_packer_options *o,
                        int64_t *document)
{
	int64_t space = o->seq_length * o->micro_batches;
	size_t count = 0, wanted = corpus_random(random) % (most + 1);
	while (count < wanted) {
		const int64_t lengths[] = {0,
		                           1,
		                           o->seq_length,
		                           o->seq_length + 1,
		                           o->seq_length * 7 + 3,
		                           (int64_t)(corpus_random(random) % (uint64_t)(o->seq_length + 1)),
		                           (int64_t)(corpus_random(random) % (uint64_t)(o->seq_length / 16 + 1)),
		                           (int64_t)(corpus_random(random) % (uint64_t)(o->seq_length / 16 + 1))};
		int64_t tokens = lengths[corpus_random(random) % 8];
		if (tokens > space)
			break;
		space -= tokens;
		batch[count++] = (struct wlb_span){
			.document = (*document)++, .start = (int64_t)(corpus_random(random) % 100), .tokens = tokens};
	}
	return count;
}

static void run_any_stream(uint64_t seed)
{
	static const int64_t windows[] = {1, 16, 1000, 131072};
	uint64_t random = seed;
	struct wlb_packer_options o;
	wlb_packer_options_init(&o, windows[corpus_random(&random) % 4], 1 + (int32_t)(corpus_random(&random) % 12));
	o.strategy = (enum wlb_strategy)(corpus_random(&random) % 5);
	o.max_length_ratio = 1.0 + (double)(corpus_random(&random) % 5) / 4.0;
	o.max_delay_steps = (int32_t)(corpus_random(&random) % 10);
	struct wlb_packer *packer = packer_of(&o);
	struct books books = {0};
	struct wlb_span batch[200];
	int64_t document = 0, held = 0;
	for (int k = 0; k < 40; k++) {
		size_t count = any_batch(&random, batch, 200, &o, &document);
		int64_t in = books.in_tokens;
		books_in(&books, batch, count);
		const struct wlb_step *step = step_of(packer, batch, count);
		assert_int_equal(step->index, k);
		books_out(&books, step, max_tokens_of(&o), delay_bound_of(&o));
		if (o.strategy == WLB_STRATEGY_DYNAMIC)
			assert_true(step->cuts == 0 && step->held_tokens == 0);
		if (o.strategy == WLB_STRATEGY_BALANCED && held + books.in_tokens > in)
			assert_true(step->tokens > 0);
		held = step->held_tokens;
	}
	while (held > 0) {
		const struct wlb_step *step = step_of(packer, NULL, 0);
		assert_true(step->tokens > 0);
		books_out(&books, step, max_tokens_of(&o), delay_bound_of(&o));
		held = step->held_tokens;
	}
	books_close(&books);
	wlb_packer_free(packer);
}

static void loses_nothing_and_keeps_its_bounds_on_any_stream(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 3000; seed++)
		run_any_stream(seed);
}

struct quality {
	double imbalance;
	double delay_steps;
};

static struct quality run_corpus(const struct wlb_packer_options *options, double tail, int steps)
{
	struct wlb_packer *packer = packer_of(options);
	struct corpus corpus = {0};
	struct quality quality = {0};
	double tokens = 0.0;
	wlb_lengths_init(&corpus.lengths, 7, tail);
	for (int k = 0; k < steps; k++) {
		size_t count = corpus_next(&corpus, options->seq_length, options->seq_length * options->micro_batches);
		const struct wlb_step *step = step_of(packer, corpus.batch, count);
		assert_int_equal(step->cuts, 0);
		quality.imbalance += wlb_step_imbalance(step) / steps;
		tokens += (double)step->tokens;
		for (size_t i = 0; i < step->count; i++)
			quality.delay_steps += (double)step->spans[i].span.tokens * (double)step->spans[i].waited_steps;
	}
	quality.delay_steps /= tokens;
	corpus_free(&corpus);
	wlb_packer_free(packer);
	return quality;
}

static void balances_the_corpus_within_the_delay_aimed_at(void **state)
{
	(void)state;
	static const int32_t sizes[] = {4, 8, 16, 32};
	struct wlb_packer_options o;
	for (int n = 0; n < 4; n++) {
		wlb_packer_options_init(&o, 131072, sizes[n]);
		o.max_length_ratio = 1.5;
		struct quality quality = run_corpus(&o, 1.0, 500);
		assert_true(quality.imbalance <= 1.02);
		assert_true(quality.delay_steps <= 0.50);
		o.max_length_ratio = 1.25;
		quality = run_corpus(&o, 1.0, 500);
		assert_true(quality.imbalance <= 1.03);
		assert_true(quality.delay_steps <= 0.50);
	}
}

static void steers_the_delay_to_the_target(void **state)
{
	(void)state;
	struct wlb_packer_options o;
	wlb_packer_options_init(&o, 131072, 8);
	o.target_delay_steps = 0.25;
	struct quality soon = run_corpus(&o, 1.0, 500);
	o.target_delay_steps = 0.70;
	struct quality late = run_corpus(&o, 1.0, 500);
	assert_true(soon.delay_steps < 0.32);
	assert_true(late.delay_steps > 0.55 && late.delay_steps < 0.75);
	assert_true(late.imbalance < soon.imbalance);
}

static void beats_the_published_greedy_on_heavier_and_lighter_tails(void **state)
{
	(void)state;
	static const double tails[] = {0.5, 2.0, 4.0};
	struct wlb_packer_options ours, greedy;
	wlb_packer_options_init(&ours, 131072, 16);
	greedy = ours;
	greedy.strategy = WLB_STRATEGY_GREEDY;
	for (int t = 0; t < 3; t++) {
		struct quality mine = run_corpus(&ours, tails[t], 300);
		struct quality published = run_corpus(&greedy, tails[t], 300);
		assert_true(mine.imbalance - 1.0 < 0.6 * (published.imbalance - 1.0));
		assert_true(mine.delay_steps <= 0.50);
	}
}

static void weighs_with_the_callers_own_work(void **state)
{
	(void)state;
	struct wlb_packer_options o;
	wlb_packer_options_init(&o, 131072, 8);
	struct wlb_step copy;
	struct wlb_load loads[8];
	struct wlb_packer *packer = packer_of(&o);
	struct wlb_span batch[] = {{.document = 1, .tokens = 1000}};
	copy = *step_of(packer, batch, 1);
	for (int b = 0; b < 8; b++)
		loads[b] = copy.loads[b];
	double most = 0.0;
	for (int b = 0; b < 8; b++)
		most = loads[b].work > most ? loads[b].work : most;
	assert_true(most == wlb_cost_document(&corpus_model, 1000));
	assert_true(wlb_step_imbalance(&copy) == 8.0);
	wlb_packer_free(packer);
}

static double squared(const void *context, int64_t tokens)
{
	return *(const double *)context * (double)tokens * (double)tokens;
}

static void needs_no_model_where_work_is_given(void **state)
{
	(void)state;
	double unit = 2.0;
	struct wlb_packer_options o;
	wlb_packer_options_init(&o, 100, 1);
	o.work = squared;
	o.work_context = &unit;
	struct wlb_error error;
	struct wlb_packer *packer = wlb_packer_new(NULL, &o, &error);
	assert_non_null(packer);
	struct wlb_span batch[] = {{.document = 1, .tokens = 10}, {.document = 2, .tokens = 30}};
	assert_true(step_of(packer, batch, 2)->loads[0].work == 2000.0);
	wlb_packer_free(packer);
}

/* greedy keeps a document above half of the window until there is one for each micro-batch. */
static void counts_the_work_that_is_held(void **state)
{
	(void)state;
	double unit = 2.0;
	struct wlb_packer_options o;
	wlb_packer_options_init(&o, 100, 3);
	o.strategy = WLB_STRATEGY_GREEDY;
	o.work = squared;
	o.work_context = &unit;
	struct wlb_packer *packer = packer_of(&o);
	const struct wlb_span first[] = {
		{.document = 1, .tokens = 80}, {.document = 2, .tokens = 60}, {.document = 3, .tokens = 10}};
	const struct wlb_span last = {.document = 4, .tokens = 70};
	assert_true(step_of(packer, first, 3)->held_work == 20000.0);
	assert_true(step_of(packer, &last, 1)->held_work == 0.0);
	wlb_packer_free(packer);
}

/* At ratio 1, nine micro-batches of 100 take only nine of fifteen documents of 60 whole, step after step. */
static void keeps_the_delay_bound_by_cutting_where_nothing_else_does(void **state)
{
	(void)state;
	struct wlb_packer_options o;
	wlb_packer_options_init(&o, 100, 9);
	o.max_length_ratio = 1.0;
	o.max_delay_steps = 4;
	struct wlb_packer *packer = packer_of(&o);
	struct books books = {0};
	struct wlb_span batch[15];
	int64_t cuts = 0, held = 1;
	for (int k = 0; k < 50; k++) {
		for (int i = 0; i < 15; i++)
			batch[i] = (struct wlb_span){.document = 15 * k + i, .tokens = 60};
		books_in(&books, batch, 15);
		const struct wlb_step *step = step_of(packer, batch, 15);
		books_out(&books, step, 100, 4);
		cuts += step->cuts;
	}
	assert_true(cuts > 0);
	for (int k = 0; held > 0; k++) {
		assert_true(k <= 4);
		const struct wlb_step *step = step_of(packer, NULL, 0);
		books_out(&books, step, 100, 4);
		held = step->held_tokens;
	}
	books_close(&books);
	wlb_packer_free(packer);
}

static void plain_cuts_only_between_micro_batches(void **state)
{
	(void)state;
	static const struct wlb_span batch[] = {{.document = 0, .tokens = 1}, {.document = 1, .tokens = 10}};
	static const struct wlb_packed_span expected[] = {
		{{0, 0, 1}, 0, 0}, {{1, 0, 3}, 0, 0}, {{1, 3, 4}, 1, 0}, {{1, 7, 3}, 2, 0}};
	struct wlb_packer_options o;
	wlb_packer_options_init(&o, 4, 3);
	o.strategy = WLB_STRATEGY_PLAIN;
	struct wlb_packer *packer = packer_of(&o);
	const struct wlb_step *step = step_of(packer, batch, 2);
	assert_int_equal(step->count, 4);
	assert_memory_equal(step->spans, expected, sizeof(expected));
	assert_true(step->loads[1].work == wlb_cost_document(&corpus_model, 4));
	assert_true(step->loads[2].work == wlb_cost_document(&corpus_model, 3));
	wlb_packer_free(packer);
}

/* At window 4, {3, 3, 3, 3} fill 3 of each micro-batch, and the fifth document of 3 is cut into each that has space. */
static void counts_a_document_that_is_cut_once(void **state)
{
	(void)state;
	static const struct wlb_span batch[] = {{.document = 0, .tokens = 3},
	                                        {.document = 1, .tokens = 3},
	                                        {.document = 2, .tokens = 3},
	                                        {.document = 3, .tokens = 3},
	                                        {.document = 4, .tokens = 3}};
	static const struct wlb_span longer[] = {{.document = 0, .tokens = 3}, {.document = 1, .tokens = 5}};
	struct wlb_packer_options o;
	wlb_packer_options_init(&o, 4, 4);
	o.strategy = WLB_STRATEGY_FIXED;
	struct wlb_packer *packer = packer_of(&o);
	const struct wlb_step *step = step_of(packer, batch, 5);
	assert_int_equal(step->count, 7);
	assert_int_equal(step->cuts, 1);
	wlb_packer_free(packer);
	o.strategy = WLB_STRATEGY_PLAIN;
	packer = packer_of(&o);
	step = step_of(packer, longer, 2);
	assert_int_equal(step->count, 3);
	assert_int_equal(step->cuts, 0);
	wlb_packer_free(packer);
}

static void packs_a_million_documents(void **state)
{
	(void)state;
	enum { DOCUMENTS = 1000000 };
	static const enum wlb_strategy all[] = {WLB_STRATEGY_BALANCED, WLB_STRATEGY_FIXED, WLB_STRATEGY_PLAIN};
	struct wlb_span *batch = malloc(DOCUMENTS * sizeof(*batch));
	assert_non_null(batch);
	uint64_t random = 1;
	for (int64_t i = 0; i < DOCUMENTS; i++)
		batch[i] = (struct wlb_span){.document = i, .tokens = (int64_t)(1 + corpus_random(&random) % 7)};
	for (int s = 0; s < 3; s++) {
		struct wlb_packer_options o;
		wlb_packer_options_init(&o, 131072, 32);
		o.strategy = all[s];
		struct wlb_packer *packer = packer_of(&o);
		struct books books = {0};
		books_in(&books, batch, DOCUMENTS);
		const struct wlb_step *step = step_of(packer, batch, DOCUMENTS);
		assert_int_equal(step->held_tokens, 0);
		books_out(&books, step, max_tokens_of(&o), 0);
		books_close(&books);
		wlb_packer_free(packer);
	}
	free(batch);
}

/* Long documents in every micro-batch of many: the search over releases is a sample of them then. */
static void balances_a_thousand_micro_batches(void **state)
{
	(void)state;
	struct wlb_packer_options o;
	wlb_packer_options_init(&o, 131072, 1000);
	o.max_length_ratio = 1.5;
	assert_true(run_corpus(&o, 2.0, 12).imbalance < 1.05);
}

static void refuses_a_batch_that_is_none_and_stays_as_it_was(void **state)
{
	(void)state;
	struct wlb_packer_options o;
	wlb_packer_options_init(&o, 100, 4);
	struct wlb_packer *packer = packer_of(&o);
	struct wlb_error error;
	const struct wlb_span negative[] = {{.document = 1, .tokens = 5}, {.document = 2, .tokens = -1}};
	const struct wlb_span before[] = {{.document = 3, .start = -1, .tokens = 5}};
	const struct wlb_span beyond[] = {{.document = 4, .start = INT64_MAX - 3, .tokens = 5}};
	const struct wlb_span full[] = {{.document = 5, .tokens = 300}, {.document = 6, .tokens = 101}};
	assert_null(wlb_packer_next(packer, negative, 2, &error));
	assert_string_equal(error.message, "document 2 has tokens -1 from 0 on: neither may be negative, nor their sum "
	                                   "exceed 2^63 - 1");
	assert_null(wlb_packer_next(packer, before, 1, &error));
	assert_null(wlb_packer_next(packer, beyond, 1, &error));
	assert_null(wlb_packer_next(packer, full, 2, &error));
	assert_string_equal(error.message, "document 6 of 101 tokens makes the batch longer than 4 micro-batches of "
	                                   "100 tokens: give its rest to the next batch");
	const struct wlb_step *step = step_of(packer, full, 1);
	assert_int_equal(step->index, 0);
	assert_int_equal(step->tokens + step->held_tokens, 300);
	wlb_packer_free(packer);
}

static double of_what_is_odd(const void *work, int64_t tokens)
{
	return tokens % 2 == 1 ? *(const double *)work : (double)tokens;
}

/* The documents of `even` have valid work; parts of them need not. */
static void refuses_and_stays(const struct wlb_packer_options *o, const struct wlb_span *even, size_t count,
                              const struct wlb_span *refused, const char *message)
{
	struct wlb_error error;
	struct wlb_packer *packer = packer_of(o), *other = packer_of(o);
	unsigned char before[4096], after[4096];
	step_of(packer, even, count);
	step_of(other, even, count);
	size_t bytes = wlb_packer_state_bytes(packer);
	assert_true(bytes <= sizeof(before));
	wlb_packer_save(packer, before);
	assert_null(wlb_packer_next(packer, refused, 1, &error));
	assert_string_equal(error.message, message);
	assert_int_equal(wlb_packer_state_bytes(packer), bytes);
	wlb_packer_save(packer, after);
	assert_memory_equal(before, after, bytes);
	const struct wlb_step *step = step_of(packer, even, count), *expected = step_of(other, even, count);
	assert_int_equal(step->count, expected->count);
	assert_memory_equal(step->spans, expected->spans, step->count * sizeof(*step->spans));
	wlb_packer_free(packer);
	wlb_packer_free(other);
}

static void refuses_work_that_is_none_and_stays_as_it_was(void **state)
{
	(void)state;
	static const double wrong[] = {NAN, INFINITY, -2.0, 0.0};
	static const char *const printed[] = {"nan", "inf", "-2", "0"};
	static const struct wlb_span even[] = {{.document = 1, .tokens = 60}, {.document = 2, .tokens = 8}};
	static const struct wlb_span odd = {.document = 7, .tokens = 31};
	/* Plain cuts it at 101 tokens, of which the second part has 99: even by itself, odd in parts. */
	static const struct wlb_span cut = {.document = 7, .tokens = 120};
	for (int i = 0; i < 16; i++) {
		char message[100];
		struct wlb_packer_options o;
		wlb_packer_options_init(&o, 101, 4);
		o.strategy = (enum wlb_strategy)(i % 4);
		o.work = of_what_is_odd;
		o.work_context = &wrong[i / 4];
		snprintf(message, sizeof(message),
		         "document 7: the work of 31 tokens is %s: it must be finite and above 0", printed[i / 4]);
		refuses_and_stays(&o, even, 2, &odd, message);
		snprintf(message, sizeof(message),
		         "document 7: the work of 101 tokens is %s: it must be finite and above 0", printed[i / 4]);
		refuses_and_stays(&o, even, 2, &cut, message);
	}
}

static double of_sixty(const void *unused, int64_t tokens)
{
	(void)unused;
	return tokens == 60 ? 1.0 : NAN;
}

/* The stream of the test above, which cuts documents that were held: their parts have no valid work. */
static void keeps_what_it_held_where_a_cut_is_refused(void **state)
{
	(void)state;
	struct wlb_packer_options o;
	wlb_packer_options_init(&o, 100, 9);
	o.max_length_ratio = 1.0;
	o.max_delay_steps = 4;
	o.work = of_sixty;
	struct wlb_packer *packer = packer_of(&o);
	static unsigned char before[16384], after[16384];
	struct wlb_span batch[15];
	struct wlb_error error;
	const struct wlb_step *step;
	int64_t document = 0;
	size_t bytes;
	do {
		for (int i = 0; i < 15; i++)
			batch[i] = (struct wlb_span){.document = document++, .tokens = 60};
		bytes = wlb_packer_state_bytes(packer);
		assert_true(document < 750 && bytes <= sizeof(before));
		wlb_packer_save(packer, before);
		step = wlb_packer_next(packer, batch, 15, &error);
	} while (step != NULL);
	assert_non_null(strstr(error.message, "tokens is nan: it must be finite and above 0"));
	assert_int_equal(wlb_packer_state_bytes(packer), bytes);
	wlb_packer_save(packer, after);
	assert_memory_equal(before, after, bytes);
	wlb_packer_free(packer);
}

static void has_no_imbalance_where_work_is_not_finite(void **state)
{
	(void)state;
	static const struct wlb_load loads[] = {{NAN, 1}, {1.0, 1}}, large[] = {{1e308, 1}, {1e308, 1}};
	assert_true(isnan(wlb_step_imbalance(&(struct wlb_step){.loads = loads, .micro_batches = 2})));
	assert_true(isnan(wlb_step_imbalance(&(struct wlb_step){.loads = large, .micro_batches = 2})));
}

static void refuses_options_out_of_range(void **state)
{
	(void)state;
	struct wlb_error error;
	struct wlb_packer_options good, o;
	wlb_packer_options_init(&good, 100, 4);
#define REFUSES(change, text)                                                                                          \
	do {                                                                                                           \
		o = good;                                                                                              \
		change;                                                                                                \
		assert_null(wlb_packer_new(&corpus_model, &o, &error));                                                \
		assert_string_equal(error.message, text);                                                              \
	} while (0)
	REFUSES(o.strategy = 5, "strategy 5 is unknown: use one of enum wlb_strategy");
	REFUSES(o.seq_length = 0, "seq_length is 0: it must be between 1 and 1073741824");
	REFUSES(o.micro_batches = -1, "-1 micro-batches: it must be between 1 and 1048576");
	REFUSES(o.max_length_ratio = 0.99, "max_length_ratio is 0.99: it must be between 1 and 64");
	REFUSES(o.max_delay_steps = -1, "max_delay_steps is -1: it must be between 0 and 1048576");
	REFUSES(o.target_delay_steps = 0, "target_delay_steps is 0: it must be a finite number above 0");
	assert_null(wlb_packer_new(NULL, &good, &error));
	assert_string_equal(error.message,
	                    "no model and no work function: the packer needs one of them to weigh documents");
}

static void names_its_strategies(void **state)
{
	(void)state;
	struct wlb_error error;
	enum wlb_strategy strategy;
	for (int i = 0; i <= WLB_STRATEGY_DYNAMIC; i++) {
		assert_int_equal(wlb_strategy_parse(wlb_strategy_name((enum wlb_strategy)i), &strategy, &error), 0);
		assert_int_equal(strategy, i);
	}
	assert_int_equal(wlb_strategy_parse("best", &strategy, &error), -1);
	assert_string_equal(error.message,
	                    "strategy \"best\" is unknown: use balanced, greedy, fixed, plain or dynamic");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loses_nothing_and_keeps_its_bounds_on_any_stream),
		cmocka_unit_test(balances_the_corpus_within_the_delay_aimed_at),
		cmocka_unit_test(steers_the_delay_to_the_target),
		cmocka_unit_test(beats_the_published_greedy_on_heavier_and_lighter_tails),
		cmocka_unit_test(weighs_with_the_callers_own_work),
		cmocka_unit_test(needs_no_model_where_work_is_given),
		cmocka_unit_test(counts_the_work_that_is_held),
		cmocka_unit_test(keeps_the_delay_bound_by_cutting_where_nothing_else_does),
		cmocka_unit_test(plain_cuts_only_between_micro_batches),
		cmocka_unit_test(counts_a_document_that_is_cut_once),
		cmocka_unit_test(packs_a_million_documents),
		cmocka_unit_test(balances_a_thousand_micro_batches),
		cmocka_unit_test(refuses_a_batch_that_is_none_and_stays_as_it_was),
		cmocka_unit_test(refuses_work_that_is_none_and_stays_as_it_was),
		cmocka_unit_test(keeps_what_it_held_where_a_cut_is_refused),
		cmocka_unit_test(has_no_imbalance_where_work_is_not_finite),
		cmocka_unit_test(refuses_options_out_of_range),
		cmocka_unit_test(names_its_strategies),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
