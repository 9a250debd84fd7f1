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
	assert_int_equal(x->cuts, y->cuts);
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
		const int32_t micro_batches = k < 60 ? 1 + k / 20 : 4; /* a batch that grows */
		if (k % 7 == 3) {
			/* The old one goes; the one restored from its bytes takes over as `second`. */
			void *state = saved(first, &bytes);
			wlb_packer_free(second);
			second = packer_of(strategy);
			restores(second, state, bytes);
			free(state);
		}
		wlb_packer_set_micro_batches(first, micro_batches);
		wlb_packer_set_micro_batches(second, micro_batches);
		size_t count = corpus_next(&corpus, 131072, micro_batches * INT64_C(131072));
		const struct wlb_step *x = wlb_packer_next(first, corpus.batch, count, NULL);
		const struct wlb_step *y = wlb_packer_next(second, corpus.batch, count, NULL);
		assert_non_null(x);
		assert_non_null(y);
		assert_int_equal(x->micro_batches, micro_batches);
		assert_equal_steps(x, y);
	}
	corpus_free(&corpus);
	wlb_packer_free(first);
	wlb_packer_free(second);
}

static void refuses_a_batch_for_more_micro_batches(void **state)
{
	const struct wlb_span batch[] = {
		{.document = 1, .tokens = 131072}, {.document = 2, .tokens = 131072}, {.document = 3, .tokens = 1}};
	struct wlb_packer *packer = packer_of(WLB_STRATEGY_BALANCED);
	struct wlb_error error;
	wlb_packer_set_micro_batches(packer, 2);
	assert_null(wlb_packer_next(packer, batch, 3, &error));
	assert_non_null(strstr(error.message, "makes the batch longer than 2 micro-batches"));
	wlb_packer_set_micro_batches(packer, 3);
	assert_non_null(wlb_packer_next(packer, batch, 3, &error));
	wlb_packer_free(packer);
	(void)state;
}

/* A packer whose number of micro-batches is set later packs as one that was made for it. */
static void packs_as_one_made_for_fewer(void **state)
{
	for (enum wlb_strategy s = WLB_STRATEGY_BALANCED; s <= WLB_STRATEGY_PLAIN; s++) {
		struct wlb_packer_options options = options_of(s);
		options.micro_batches = 2;
		struct wlb_packer *set_later = packer_of(s), *made = wlb_packer_new(&corpus_model, &options, NULL);
		struct corpus corpus = {0};
		wlb_lengths_init(&corpus.lengths, 5, 2.0);
		wlb_packer_set_micro_batches(set_later, 2);
		for (int k = 0; k < 60; k++) {
			size_t count = corpus_next(&corpus, 131072, 2 * 131072);
			assert_equal_steps(wlb_packer_next(set_later, corpus.batch, count, NULL),
			                   wlb_packer_next(made, corpus.batch, count, NULL));
		}
		corpus_free(&corpus);
		wlb_packer_free(set_later);
		wlb_packer_free(made);
	}
	(void)state;
}

static void has_the_same_future(void **state)
{
	(void)state;
	check_future(WLB_STRATEGY_BALANCED);
	check_future(WLB_STRATEGY_GREEDY);
	check_future(WLB_STRATEGY_FIXED);
	check_future(WLB_STRATEGY_PLAIN);
	check_future(WLB_STRATEGY_DYNAMIC);
}

/* Documents of 160 tokens come in parts of 100, the window, and of 60; nine micro-batches of 100 do not take as many
 * parts of 60 as arrive, and those that are due are cut again. No document of at most 100 tokens is. */
static void knows_parts_after_a_restore(void **state)
{
	(void)state;
	struct wlb_packer_options o;
	wlb_packer_options_init(&o, 100, 9);
	o.max_length_ratio = 1.0;
	o.max_delay_steps = 4;
	struct wlb_packer *packer = wlb_packer_new(&corpus_model, &o, NULL);
	assert_non_null(packer);
	int64_t document = 0, cut_again = 0;
	for (int k = 0; k < 50; k++) {
		struct wlb_span batch[5];
		for (int i = 0; i < 5; i++)
			batch[i] = (struct wlb_span){.document = document++, .tokens = 160};
		size_t bytes;
		void *bytes_of = saved(packer, &bytes);
		wlb_packer_free(packer);
		packer = wlb_packer_new(&corpus_model, &o, NULL);
		assert_non_null(packer);
		restores(packer, bytes_of, bytes);
		free(bytes_of);
		const struct wlb_step *step = wlb_packer_next(packer, batch, 5, NULL);
		assert_non_null(step);
		assert_int_equal(step->cuts, 0);
		for (size_t i = 0; i < step->count; i++)
			cut_again += step->spans[i].waited_steps > 0 && step->spans[i].span.tokens < 60;
	}
	assert_true(cut_again > 0);
	wlb_packer_free(packer);
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

static double squared(const void *unused, int64_t tokens)
{
	(void)unused;
	return (double)tokens * (double)tokens;
}

static uint64_t hash_word(uint64_t hash, uint64_t word)
{
	return (hash ^ word) * UINT64_C(0x100000001b3);
}

/* Batches of at most 300 tokens, some documents longer than the window of 100: those with which the states below were
 * made. */
static size_t next_batch(uint64_t *random, int64_t *document, struct wlb_span *batch)
{
	size_t count = 0;
	for (int64_t left = 300;; count++) {
		*random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		int64_t tokens = 1 + (int64_t)((*random >> 33) % ((*random >> 60) < 3 ? 130 : 20));
		if (tokens > left)
			return count;
		left -= tokens;
		batch[count] = (struct wlb_span){.document = (*document)++, .tokens = tokens};
	}
}

/* The tokens of 20 steps and their micro-batches, however they are cut into spans. */
static uint64_t hash_of_later_steps(struct wlb_packer *packer)
{
	uint64_t random = 1, hash = UINT64_C(0xcbf29ce484222325);
	struct wlb_span batch[300];
	int64_t document = 0;
	for (int k = 0; k < 30; k++) {
		size_t count = next_batch(&random, &document, batch);
		const struct wlb_step *step = k < 10 ? NULL : wlb_packer_next(packer, batch, count, NULL);
		assert_true(k < 10 || step != NULL);
		for (size_t i = 0; step != NULL && i < step->count; i++)
			for (int64_t t = 0; t < step->spans[i].span.tokens; t++) {
				hash = hash_word(hash, (uint64_t)step->spans[i].span.document);
				hash = hash_word(hash, (uint64_t)(step->spans[i].span.start + t));
				hash = hash_word(hash, (uint64_t)step->spans[i].micro_batch);
			}
	}
	return hash;
}

/* States after ten steps, and the hash of the twenty steps after them, both of version 0.1.0 before plain kept
 * documents whole: a run of that time goes on with the same data. */
static void goes_on_from_states_of_earlier_versions(void **state)
{
	(void)state;
#define OPTIONS(strategy)                                                                                              \
	0x314b434150424c57, strategy, 100, 3, 0x3ff4000000000000, 32, 0x3fdccccccccccccd, 0x3ff0000000000000,          \
		0x40c3880000000000, 10, 2738
	static const struct {
		uint64_t words[30];
		size_t count;
		uint64_t hash;
	} saved_states[] = {
		{{OPTIONS(0), 0x3fca5441f6d1739f, 4, 82, 0, 100, 5, 121, 0, 77, 7, 139, 0, 57, 8, 164, 0, 51,
	          9,          0xd6438b82b9ee847d},
	         30,
	         0x641165421e873404},
		{{OPTIONS(1), 0x3fc88964b4b6e871, 2, 137, 0, 32, 8, 153, 0, 34, 8, 0x30511e2a1b79edc6},
	         22,
	         0xcbf2f88b006d2a72},
		{{OPTIONS(2), 0x3fc5590ef45be586, 0, 0xb65e596eb1ddb413}, 14, 0xc44a9614cfb6399c},
		{{OPTIONS(3), 0x3fc5590ef45be586, 0, 0x2308ea6824bdae36}, 14, 0xd2cb3286a6d387b0},
	};
#undef OPTIONS
	for (size_t i = 0; i < sizeof(saved_states) / sizeof(saved_states[0]); i++) {
		struct wlb_packer_options o;
		wlb_packer_options_init(&o, 100, 3);
		o.strategy = (enum wlb_strategy)i;
		o.work = squared;
		struct wlb_packer *packer = wlb_packer_new(NULL, &o, NULL);
		assert_non_null(packer);
		unsigned char bytes[30 * 8];
		for (size_t byte = 0; byte < sizeof(bytes); byte++)
			bytes[byte] = (unsigned char)(saved_states[i].words[byte / 8] >> (8 * (byte % 8)));
		restores(packer, bytes, saved_states[i].count * 8);
		assert_int_equal(hash_of_later_steps(packer), saved_states[i].hash);
		wlb_packer_free(packer);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(has_the_same_future),
		cmocka_unit_test(packs_as_one_made_for_fewer),
		cmocka_unit_test(refuses_a_batch_for_more_micro_batches),
		cmocka_unit_test(knows_parts_after_a_restore),
		cmocka_unit_test(refuses_every_damaged_byte),
		cmocka_unit_test(refuses_what_no_packer_can_hold),
		cmocka_unit_test(stays_as_it_was_when_it_refuses),
		cmocka_unit_test(refuses_other_options_and_models),
		cmocka_unit_test(packs_the_same_everywhere),
		cmocka_unit_test(goes_on_from_states_of_earlier_versions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
