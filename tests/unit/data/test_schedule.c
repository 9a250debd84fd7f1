/* Which documents enter which step: everything once an epoch, bounded steps, exact resumption. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/data/fixture.h"
#include "tests/unit/data/index_file.h"
#include "worker/data/schedule.h"
#include "worker/data/shuffle.h"

enum { SEQ_LENGTH = 16 };

static struct wlb_dataset *make_dataset(void **state, const int32_t *lengths, int count)
{
	static struct index_file f; /* too large for a stack under a sanitizer */
	struct wlb_error error;
	index_file_init(&f, 1, 1, lengths, count);
	index_file_write(&f, state);
	index_file_write_tokens(&f, 100, state);
	struct wlb_dataset *d;
	if (wlb_dataset_open(fixture_path(state, "x"), &d, &error) < 0)
		fail_msg("%s", error.message);
	return d;
}

static struct wlb_schedule *make_schedule(const struct wlb_dataset *d, int64_t global_batch_size, uint64_t seed)
{
	struct wlb_error error;
	struct wlb_schedule *s = wlb_schedule_new(d, SEQ_LENGTH, global_batch_size, seed, &error);
	if (s == NULL)
		fail_msg("%s", error.message);
	return s;
}

/* Every length around the borders of the cutting, and a few far above. */
static const int32_t edge_lengths[] = {0, 1, 2, 3, 15, 16, 17, 18, 31, 32, 33, 34, 49, 100, 1000};
static const int edge_count = sizeof(edge_lengths) / sizeof(edge_lengths[0]);

static struct wlb_dataset *make_mixed(void **state, int32_t *lengths, int count)
{
	for (int i = 0; i < count; i++)
		lengths[i] = edge_lengths[(i * 7) % edge_count];
	return make_dataset(state, lengths, count);
}

static void test_shuffle_is_a_permutation(void **state)
{
	(void)state;
	static const int64_t counts[] = {1, 2, 3, 255, 256, 257, 1000, 65536, 65537};
	for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
		struct wlb_shuffle shuffle;
		char *seen = calloc((size_t)counts[c], 1);
		wlb_shuffle_init(&shuffle, 42, 3, counts[c]);
		for (int64_t i = 0; i < counts[c]; i++) {
			int64_t at = wlb_shuffle_at(&shuffle, i);
			assert_in_range(at, 0, counts[c] - 1);
			assert_int_equal(seen[at]++, 0);
		}
		free(seen);
	}
}

/* Neighbours must not stay neighbours, and each value must appear about everywhere over many seeds. */
static void test_shuffle_mixes(void **state)
{
	(void)state;
	enum { COUNT = 10, SEEDS = 10000 };
	int at_place[COUNT][COUNT] = {0};
	for (int seed = 0; seed < SEEDS; seed++) {
		struct wlb_shuffle shuffle;
		wlb_shuffle_init(&shuffle, (uint64_t)seed, 0, COUNT);
		for (int i = 0; i < COUNT; i++)
			at_place[i][wlb_shuffle_at(&shuffle, i)]++;
	}
	for (int i = 0; i < COUNT; i++)
		for (int j = 0; j < COUNT; j++) /* 1000 expected, standard deviation 30 */
			assert_in_range(at_place[i][j], 850, 1150);
	struct wlb_shuffle shuffle;
	int neighbours = 0;
	wlb_shuffle_init(&shuffle, 1, 0, 100000);
	for (int i = 1; i < 100000; i++)
		neighbours += llabs(wlb_shuffle_at(&shuffle, i) - wlb_shuffle_at(&shuffle, i - 1)) == 1;
	assert_in_range(neighbours, 0, 20); /* 2 expected */
}

static void test_every_input_once_an_epoch(void **state)
{
	enum { COUNT = 60 };
	int32_t lengths[COUNT];
	struct wlb_dataset *d = make_mixed(state, lengths, COUNT);
	struct wlb_schedule *s = make_schedule(d, 4, 7);
	int(*given)[1000] = calloc(COUNT, sizeof(*given));
	int64_t inputs = 0, epoch_inputs = 0;
	for (int i = 0; i < COUNT; i++)
		epoch_inputs += lengths[i] > 1 ? lengths[i] - 1 : 0;
	while (inputs < 3 * epoch_inputs) {
		const struct wlb_span *spans;
		struct wlb_error error;
		int count = wlb_schedule_next(s, &spans, &error);
		assert_true(count > 0);
		for (int p = 0; p < count && inputs < 3 * epoch_inputs; p++) {
			assert_in_range(spans[p].tokens, 1, SEQ_LENGTH);
			assert_int_equal(spans[p].start % SEQ_LENGTH, 0);
			assert_true(spans[p].start + spans[p].tokens <= lengths[spans[p].document] - 1);
			for (int i = 0; i < spans[p].tokens; i++)
				given[spans[p].document][spans[p].start + i]++;
			inputs += spans[p].tokens;
		}
	}
	assert_int_equal(inputs, 3 * epoch_inputs); /* epochs end at spans */
	for (int i = 0; i < COUNT; i++)
		for (int t = 0; t < lengths[i] - 1; t++)
			assert_int_equal(given[i][t], 3);
	free(given);
	wlb_schedule_free(s);
	wlb_dataset_close(d);
}

static void test_steps_are_bounded_and_greedy(void **state)
{
	enum { COUNT = 60, BATCH = 3 };
	int32_t lengths[COUNT];
	struct wlb_dataset *d = make_mixed(state, lengths, COUNT);
	struct wlb_schedule *s = make_schedule(d, BATCH, 7);
	int64_t before = 0;
	for (int step = 0; step < 200; step++) {
		const struct wlb_span *spans;
		struct wlb_error error;
		int count = wlb_schedule_next(s, &spans, &error);
		assert_true(count > 0);
		int64_t inputs = 0;
		for (int p = 0; p < count; p++)
			inputs += spans[p].tokens;
		assert_true(inputs <= BATCH * SEQ_LENGTH);
		if (step > 0) /* the first span did not fit the step before */
			assert_true(before + spans[0].tokens > BATCH * SEQ_LENGTH);
		before = inputs;
	}
	wlb_schedule_free(s);
	wlb_dataset_close(d);
}

static void test_cutting(void **state)
{
	static const struct {
		int32_t length;
		int32_t spans[5];
	} cases[] = {{2, {1}},
	             {SEQ_LENGTH, {SEQ_LENGTH - 1}},
	             {SEQ_LENGTH + 1, {SEQ_LENGTH}},
	             {SEQ_LENGTH + 2, {SEQ_LENGTH, 1}},
	             {2 * SEQ_LENGTH + 1, {SEQ_LENGTH, SEQ_LENGTH}},
	             {3 * SEQ_LENGTH, {SEQ_LENGTH, SEQ_LENGTH, SEQ_LENGTH - 1}}};
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		const int32_t lengths[] = {0, cases[c].length, 1};
		struct wlb_dataset *d = make_dataset(state, lengths, 3);
		struct wlb_schedule *s = make_schedule(d, 5, 0); /* a step holds an epoch */
		const struct wlb_span *spans;
		struct wlb_error error;
		int count = 0;
		while (count < 5 && cases[c].spans[count] > 0)
			count++;
		assert_true(wlb_schedule_next(s, &spans, &error) >= count);
		for (int p = 0; p < count; p++) { /* in some order */
			assert_int_equal(spans[p].document, 1);
			assert_int_equal(spans[p].start % SEQ_LENGTH, 0);
			assert_in_range(spans[p].start / SEQ_LENGTH, 0, count - 1);
			assert_int_equal(spans[p].tokens, cases[c].spans[spans[p].start / SEQ_LENGTH]);
		}
		wlb_schedule_free(s);
		wlb_dataset_close(d);
	}
}

/* One huge document among many small ones must not fill steps on end. */
static void test_spans_are_shuffled_not_documents(void **state)
{
	enum { COUNT = 201, HUGE_PIECES = 200 };
	int32_t lengths[COUNT];
	for (int i = 0; i < COUNT; i++)
		lengths[i] = SEQ_LENGTH + 1;
	lengths[100] = HUGE_PIECES * SEQ_LENGTH + 1;
	struct wlb_dataset *d = make_dataset(state, lengths, COUNT);
	struct wlb_schedule *s = make_schedule(d, 10, 3);
	for (int step = 0; step < 2 * HUGE_PIECES / 10; step++) {
		const struct wlb_span *spans;
		struct wlb_error error;
		int huge = 0, count = wlb_schedule_next(s, &spans, &error);
		assert_int_equal(count, 10);
		for (int p = 0; p < count; p++)
			huge += spans[p].document == 100;
		assert_in_range(huge, 0, 9); /* 5 expected; 10 have odds of 1 in 1000 for a step of this seed */
	}
	wlb_schedule_free(s);
	wlb_dataset_close(d);
}

static void assert_same_future(struct wlb_schedule *a, struct wlb_schedule *b, int steps)
{
	for (int step = 0; step < steps; step++) {
		const struct wlb_span *x, *y;
		struct wlb_error error;
		int count = wlb_schedule_next(a, &x, &error);
		assert_int_equal(wlb_schedule_next(b, &y, &error), count);
		assert_true(count > 0);
		for (int p = 0; p < count; p++) {
			assert_int_equal(x[p].document, y[p].document);
			assert_int_equal(x[p].start, y[p].start);
			assert_int_equal(x[p].tokens, y[p].tokens);
		}
	}
}

static void test_restore_at_every_step(void **state)
{
	enum { COUNT = 40 };
	int32_t lengths[COUNT];
	struct wlb_error error;
	struct wlb_dataset *d = make_mixed(state, lengths, COUNT);
	struct wlb_schedule *s = make_schedule(d, 2, 99);
	for (int step = 0; step < 150; step += 5) { /* more than two epochs */
		struct wlb_schedule_state saved, again;
		wlb_schedule_save(s, &saved);
		assert_int_equal(saved.step, step);
		struct wlb_schedule *resumed = make_schedule(d, 2, 99);
		assert_int_equal(wlb_schedule_restore(resumed, &saved, &error), 0);
		wlb_schedule_save(resumed, &again);
		assert_memory_equal(&saved, &again, sizeof(saved));
		assert_same_future(s, resumed, 5);
		wlb_schedule_free(resumed);
	}
	wlb_schedule_free(s);
	wlb_dataset_close(d);
}

static void test_seeds_and_epochs_differ(void **state)
{
	enum { COUNT = 200 };
	int32_t lengths[COUNT];
	int64_t order[3][COUNT];
	for (int i = 0; i < COUNT; i++)
		lengths[i] = SEQ_LENGTH + 1;
	struct wlb_dataset *d = make_dataset(state, lengths, COUNT);
	struct wlb_schedule *a = make_schedule(d, 1, 1), *b = make_schedule(d, 1, 2);
	const struct wlb_span *spans;
	struct wlb_error error;
	for (int i = 0; i < 2 * COUNT; i++) {
		assert_int_equal(wlb_schedule_next(a, &spans, &error), 1);
		order[i / COUNT][i % COUNT] = spans[0].document;
	}
	for (int i = 0; i < COUNT; i++) {
		assert_int_equal(wlb_schedule_next(b, &spans, &error), 1);
		order[2][i] = spans[0].document;
	}
	int same_epoch = 0, same_seed = 0;
	for (int i = 0; i < COUNT; i++) {
		same_epoch += order[0][i] == order[1][i];
		same_seed += order[0][i] == order[2][i];
	}
	assert_in_range(same_epoch, 0, 8); /* 1 expected */
	assert_in_range(same_seed, 0, 8);
	wlb_schedule_free(a);
	wlb_schedule_free(b);
	wlb_dataset_close(d);
}

static void expect_not_restored(struct wlb_schedule *s, const struct wlb_schedule_state *bad, const char *reason)
{
	struct wlb_error error;
	struct wlb_schedule_state before, after;
	wlb_schedule_save(s, &before);
	assert_int_equal(wlb_schedule_restore(s, bad, &error), -1);
	assert_says(error.message, reason);
	wlb_schedule_save(s, &after);
	assert_memory_equal(&before, &after, sizeof(before));
}

static void test_foreign_states_are_refused(void **state)
{
	const int32_t lengths[] = {100, 50};
	struct wlb_dataset *d = make_dataset(state, lengths, 2);
	struct wlb_schedule *s = make_schedule(d, 1, 5);
	struct wlb_schedule_state good, bad;
	wlb_schedule_save(s, &good);
	bad = good;
	bad.seed = 6;
	expect_not_restored(s, &bad, "saved with seed 6, this run has 5");
	bad = good;
	bad.tokens = 149;
	expect_not_restored(s, &bad, "a dataset of 2 documents and 149 tokens");
	bad = good;
	bad.position = 12;
	expect_not_restored(s, &bad, "position 12");
	bad = good;
	bad.epoch = -1;
	expect_not_restored(s, &bad, "epoch -1");
	bad = good;
	bad.spans = 99;
	expect_not_restored(s, &bad, "saved with 99 spans");
	wlb_schedule_free(s);
	wlb_dataset_close(d);
}

/* Documents in another order have the same numbers of documents, tokens and spans, and are other documents. */
static void test_another_order_of_documents_is_refused(void **state)
{
	const int32_t lengths[] = {100, 50, 100}, permuted[] = {50, 100, 100};
	struct wlb_schedule_state saved, restored;
	struct wlb_error error;
	struct wlb_dataset *d = make_dataset(state, lengths, 3);
	struct wlb_schedule *s = make_schedule(d, 1, 5);
	wlb_schedule_save(s, &saved);
	wlb_schedule_free(s);
	wlb_dataset_close(d);
	d = make_dataset(state, permuted, 3);
	s = make_schedule(d, 1, 5);
	expect_not_restored(s, &saved, "saved for a dataset whose index has the digest ");
	/* A checkpoint of an earlier version, which has no digest, is continued, and the next one has it. */
	saved.index_digest = 0;
	assert_int_equal(wlb_schedule_restore(s, &saved, &error), 0);
	wlb_schedule_save(s, &restored);
	assert_true(restored.index_digest == wlb_dataset_index_digest(d));
	wlb_schedule_free(s);
	wlb_dataset_close(d);
}

enum { DOCUMENT_TOKENS = 100, DOCUMENTS = 20 };
static const int32_t equal_lengths[DOCUMENTS] = {[0 ... DOCUMENTS - 1] = DOCUMENT_TOKENS};

/* A dataset of documents of equal length; `first` and `second` are exchanged. */
static struct wlb_dataset *make_exchanged(void **state, int first, int second)
{
	struct wlb_error error;
	struct wlb_dataset *d = make_dataset(state, equal_lengths, DOCUMENTS);
	wlb_dataset_close(d);
	FILE *bin = fopen(fixture_path(state, "x.bin"), "w");
	for (int i = 0; i < DOCUMENTS; i++)
		for (int k = 0; k < DOCUMENT_TOKENS; k++)
			fputc(i == first ? second : i == second ? first : i, bin);
	assert_int_equal(fclose(bin), 0);
	if (wlb_dataset_open(fixture_path(state, "x"), &d, &error) < 0 || wlb_dataset_digest_tokens(d, &error) < 0)
		fail_msg("%s", error.message);
	return d;
}

/* Documents of the same lengths, and so the same index, with other tokens: all of them, or two exchanged. */
static void test_other_tokens_are_refused(void **state)
{
	struct wlb_schedule_state saved, old, restored;
	struct wlb_error error;
	struct wlb_dataset *d = make_exchanged(state, 0, 0);
	struct wlb_schedule *s = make_schedule(d, 1, 5);
	wlb_schedule_save(s, &saved);
	assert_int_equal(wlb_schedule_restore(s, &saved, &error), 0);
	wlb_schedule_free(s);
	wlb_dataset_close(d);
	d = make_dataset(state, equal_lengths, DOCUMENTS);
	assert_int_equal(wlb_dataset_digest_tokens(d, &error), 0);
	s = make_schedule(d, 1, 5);
	expect_not_restored(s, &saved, "saved for a dataset whose .bin has the digest ");
	wlb_schedule_free(s);
	wlb_dataset_close(d);
	d = make_exchanged(state, 3, 17);
	s = make_schedule(d, 1, 5);
	assert_true(saved.index_digest == wlb_dataset_index_digest(d));
	expect_not_restored(s, &saved, "saved for a dataset whose .bin has the digest ");
	/* A checkpoint of an earlier version has no digest of the tokens; the next one has it. */
	old = saved;
	old.token_digest = 0;
	assert_int_equal(wlb_schedule_restore(s, &old, &error), 0);
	wlb_schedule_save(s, &restored);
	assert_true(restored.token_digest == wlb_dataset_token_digest(d) && restored.token_digest != 0);
	wlb_schedule_free(s);
	wlb_dataset_close(d);
}

/* Larger than its windows: the windows are in the same places, and other tokens in all places are found. */
static void test_tokens_of_a_large_dataset(void **state)
{
	uint64_t digests[3];
	struct wlb_error error;
	for (int i = 0; i < 3; i++) {
		static struct index_file f;
		int32_t length = 3 << 20;
		struct wlb_dataset *d;
		index_file_init(&f, 1, 1, &length, 1);
		index_file_write(&f, state);
		index_file_write_tokens(&f, i < 2 ? 100 : 101, state);
		assert_int_equal(wlb_dataset_open(fixture_path(state, "x"), &d, &error), 0);
		assert_true(wlb_dataset_token_digest(d) == 0);
		assert_int_equal(wlb_dataset_digest_tokens(d, &error), 0);
		digests[i] = wlb_dataset_token_digest(d);
		wlb_dataset_close(d);
	}
	assert_true(digests[0] == digests[1] && digests[0] != digests[2]);
}

static void test_refused_at_the_start(void **state)
{
	const int32_t lengths[] = {0, 1, 1};
	struct wlb_error error;
	struct wlb_dataset *d = make_dataset(state, lengths, 3);
	assert_null(wlb_schedule_new(d, SEQ_LENGTH, 1, 0, &error));
	assert_says(error.message, "no document of at least 2 tokens among its 3");
	assert_null(wlb_schedule_new(d, 0, 1, 0, &error));
	assert_says(error.message, "seq_length 0");
	assert_null(wlb_schedule_new(d, INT32_MAX, 2, 0, &error));
	assert_says(error.message, "product below 2^31");
	wlb_dataset_close(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shuffle_is_a_permutation),
		cmocka_unit_test(test_shuffle_mixes),
		cmocka_unit_test_setup_teardown(test_every_input_once_an_epoch, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_steps_are_bounded_and_greedy, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_cutting, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_spans_are_shuffled_not_documents, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_restore_at_every_step, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_seeds_and_epochs_differ, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_foreign_states_are_refused, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_another_order_of_documents_is_refused, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test_setup_teardown(test_other_tokens_are_refused, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_tokens_of_a_large_dataset, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_refused_at_the_start, fixture_setup, fixture_teardown),
	};
	return cmocka_run_group_tests_name("schedule", tests, NULL, NULL);
}
