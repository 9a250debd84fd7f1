/* A packer saved and restored mid-stream has the same future; other bytes are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/bench/pack/corpus.h"

static struct wlb_packer_options options_of(enum wlb_strategy strategy)
{
	struct wlb_packer_options o;
	wlb_packer_options_init(&o, 131072, 4);
	o.strategy = strategy;
	return o;
}

static struct wlb_packer *packer_of(enum wlb_strategy strategy)
{
	struct wlb_packer_options o = options_of(strategy);
	struct wlb_packer *packer = wlb_packer_new(&corpus_model, &o, NULL);
	assert_non_null(packer);
	return packer;
}

static void *saved(const struct wlb_packer *packer, size_t *bytes)
{
	*bytes = wlb_packer_state_bytes(packer);
	void *state = malloc(*bytes);
	assert_non_null(state);
	wlb_packer_save(packer, state);
	return state;
}

static void restores(struct wlb_packer *packer, const void *state, size_t bytes)
{
	struct wlb_error error;
	if (wlb_packer_restore(packer, state, bytes, &error) < 0)
		fail_msg("%s", error.message);
}

static void assert_equal_steps(const struct wlb_step *x, const struct wlb_step *y)
{
	assert_int_equal(x->index, y->index);
	assert_int_equal(x->count, y->count);
	assert_int_equal(x->held_tokens, y->held_tokens);
	assert_memory_equal(x->spans, y->spans, x->count * sizeof(*x->spans));
	for (int32_t b = 0; b < x->micro_batches; b++)
		assert_true(x->loads[b].work == y->loads[b].work && x->loads[b].tokens == y->loads[b].tokens);
}

static void check_future(enum wlb_strategy strategy)
{
	struct wlb_packer *first = packer_of(strategy), *second = packer_of(strategy);
	struct corpus corpus = {0};
	wlb_lengths_init(&corpus.lengths, 5, 2.0);
	size_t bytes = 0;
	for (int k = 0; k < 120; k++) {
		if (k % 7 == 3) {
			/* The old one goes; the one restored from its bytes takes over as `second`. */
			void *state = saved(first, &bytes);
			wlb_packer_free(second);
			second = packer_of(strategy);
			restores(second, state, bytes);
			free(state);
		}
		size_t count = corpus_next(&corpus, 131072, 4 * 131072);
		const struct wlb_step *x = wlb_packer_next(first, corpus.batch, count, NULL);
		const struct wlb_step *y = wlb_packer_next(second, corpus.batch, count, NULL);
		assert_non_null(x);
		assert_non_null(y);
		assert_equal_steps(x, y);
	}
	corpus_free(&corpus);
	wlb_packer_free(first);
	wlb_packer_free(second);
}

static void has_the_same_future(void **state)
{
	(void)state;
	check_future(WLB_STRATEGY_BALANCED);
	check_future(WLB_STRATEGY_GREEDY);
	check_future(WLB_STRATEGY_FIXED);
	check_future(WLB_STRATEGY_PLAIN);
}

/* A packer that holds documents. */
static struct wlb_packer *busy_packer(struct corpus *corpus)
{
	struct wlb_packer *packer = packer_of(WLB_STRATEGY_BALANCED);
	wlb_lengths_init(&corpus->lengths, 5, 2.0);
	const struct wlb_step *step;
	do {
		size_t count = corpus_next(corpus, 131072, 4 * 131072);
		step = wlb_packer_next(packer, corpus->batch, count, NULL);
		assert_non_null(step);
	} while (step->index < 5 || step->held_tokens == 0);
	return packer;
}

static void refuses_every_damaged_byte(void **state)
{
	(void)state;
	struct corpus corpus = {0};
	struct wlb_packer *packer = busy_packer(&corpus);
	size_t bytes;
	unsigned char *bytes_of = saved(packer, &bytes);
	for (size_t i = 0; i < bytes; i++) {
		bytes_of[i] ^= 0x10;
		assert_int_equal(wlb_packer_restore(packer, bytes_of, bytes, NULL), -1);
		bytes_of[i] ^= 0x10;
	}
	for (size_t shorter = 0; shorter < bytes; shorter++) {
		unsigned char *part = malloc(shorter + 1);
		assert_non_null(part);
		memcpy(part, bytes_of, shorter);
		assert_int_equal(wlb_packer_restore(packer, part, shorter, NULL), -1);
		free(part);
	}
	restores(packer, bytes_of, bytes);
	free(bytes_of);
	corpus_free(&corpus);
	wlb_packer_free(packer);
}

/* Writes word `index` and makes the checksum right again. */
static void forge(unsigned char *state, size_t bytes, size_t index, uint64_t word)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	for (int byte = 0; byte < 8; byte++)
		state[8 * index + (size_t)byte] = (unsigned char)(word >> (8 * byte));
	for (size_t i = 0; i < bytes - 8; i++)
		hash = (hash ^ state[i]) * UINT64_C(0x100000001b3);
	for (int byte = 0; byte < 8; byte++)
		state[bytes - 8 + (size_t)byte] = (unsigned char)(hash >> (8 * byte));
}

/* Words: magic, eight options, step, tokens, price, documents held, then of each document its number, start,
 * tokens and step. */
static void refuses_what_no_packer_can_hold(void **state)
{
	(void)state;
	static const struct {
		size_t word;
		uint64_t value;
	} forgeries[] = {
		{9, 0},                             /* no step given, yet documents held */
		{9, UINT64_MAX},                    /* steps before the first */
		{11, UINT64_C(0x7ff8000000000000)}, /* a price that is no number */
		{12, 1u << 20},                     /* more documents than bytes */
		{14, UINT64_MAX},                   /* a start before the document */
		{15, 0},                            /* a document without tokens */
		{15, 131073},                       /* one longer than the window */
		{16, 1u << 20},                     /* one of a step to come */
	};
	struct corpus corpus = {0};
	struct wlb_packer *packer = busy_packer(&corpus);
	for (size_t f = 0; f < sizeof(forgeries) / sizeof(forgeries[0]); f++) {
		size_t bytes;
		unsigned char *forged = saved(packer, &bytes);
		forge(forged, bytes, forgeries[f].word, forgeries[f].value);
		assert_int_equal(wlb_packer_restore(packer, forged, bytes, NULL), -1);
		free(forged);
	}
	corpus_free(&corpus);
	wlb_packer_free(packer);
}

static void stays_as_it_was_when_it_refuses(void **state)
{
	(void)state;
	struct corpus corpus = {0};
	struct wlb_packer *packer = busy_packer(&corpus);
	size_t bytes, after;
	unsigned char *before = saved(packer, &bytes);
	before[bytes / 2] ^= 1;
	assert_int_equal(wlb_packer_restore(packer, before, bytes, NULL), -1);
	before[bytes / 2] ^= 1;
	void *still = saved(packer, &after);
	assert_int_equal(after, bytes);
	assert_memory_equal(before, still, bytes);
	free(before);
	free(still);
	corpus_free(&corpus);
	wlb_packer_free(packer);
}

static void refuses_other_options_and_models(void **state)
{
	(void)state;
	struct corpus corpus = {0};
	struct wlb_packer *packer = busy_packer(&corpus);
	struct wlb_error error;
	size_t bytes;
	void *bytes_of = saved(packer, &bytes);
	struct wlb_packer_options good = options_of(WLB_STRATEGY_BALANCED), o[6] = {good, good, good, good, good, good};
	struct wlb_model wider = corpus_model;
	wider.intermediate_size *= 2;
	o[0].micro_batches = 5;
	o[1].max_length_ratio = 1.5;
	o[2].max_delay_steps = 31;
	o[3].target_delay_steps = 0.4;
	o[4].strategy = WLB_STRATEGY_GREEDY;
	for (int i = 0; i < 6; i++) {
		struct wlb_packer *other = wlb_packer_new(i == 5 ? &wider : &corpus_model, &o[i], NULL);
		assert_non_null(other);
		assert_int_equal(wlb_packer_restore(other, bytes_of, bytes, &error), -1);
		assert_string_equal(error.message, "the packer state was saved with other options or another model: go "
		                                   "on with those it was saved with");
		wlb_packer_free(other);
	}
	free(bytes_of);
	corpus_free(&corpus);
	wlb_packer_free(packer);
}

/* Another compiler, machine or day must not pack otherwise: a run goes on where it stopped. */
static void packs_the_same_everywhere(void **state)
{
	(void)state;
	struct wlb_packer *packer = packer_of(WLB_STRATEGY_BALANCED);
	struct corpus corpus = {0};
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	wlb_lengths_init(&corpus.lengths, 11, 1.0);
	for (int k = 0; k < 300; k++) {
		size_t count = corpus_next(&corpus, 131072, 4 * 131072);
		const struct wlb_step *step = wlb_packer_next(packer, corpus.batch, count, NULL);
		assert_non_null(step);
		for (size_t i = 0; i < step->count; i++) {
			hash = (hash ^ (uint64_t)step->spans[i].span.document) * UINT64_C(0x100000001b3);
			hash = (hash ^ (uint64_t)step->spans[i].micro_batch) * UINT64_C(0x100000001b3);
		}
	}
	if (hash != UINT64_C(0x735f66e7d88eeb6b))
		fail_msg("0x%016llx", (unsigned long long)hash);
	corpus_free(&corpus);
	wlb_packer_free(packer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(has_the_same_future),
		cmocka_unit_test(refuses_every_damaged_byte),
		cmocka_unit_test(refuses_what_no_packer_can_hold),
		cmocka_unit_test(stays_as_it_was_when_it_refuses),
		cmocka_unit_test(refuses_other_options_and_models),
		cmocka_unit_test(packs_the_same_everywhere),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
