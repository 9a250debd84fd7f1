/* The spans that the search takes for those of wlb-worker, beside the trainer's own schedule. */
#include <stdlib.h>
#include <string.h>

#include "planner/batches.h"
#include "planner/spans.h"
#include "tests/unit/data/fixture.h"
#include "tests/unit/data/index_file.h"
#include "worker/data/schedule.h"

static struct wlb_length_list list_of(const int64_t *tokens, size_t count)
{
	struct wlb_length_list list = {0};
	struct wlb_error error;
	for (size_t i = 0; i < count; i++)
		assert_int_equal(wlb_length_list_add(&list, tokens[i], &error), 0);
	return list;
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* The last token of a document is a target alone. */
static void cuts_documents_as_the_trainer_does(void **state)
{
	(void)state;
	static const int64_t tokens[] = {0, 1, 2, 2049, 2050, 5000};
	static const int64_t expected[] = {1, 1, 903, 2048, 2048, 2048, 2048};
	struct wlb_length_list documents = list_of(tokens, 6), spans = {0};
	struct wlb_error error;
	assert_int_equal(wlb_spans_of_documents(&documents, 2048, &spans, &error), 0);
	assert_int_equal(spans.count, 7);
	qsort(spans.tokens, spans.count, sizeof(*spans.tokens), compare);
	assert_memory_equal(spans.tokens, expected, sizeof(expected));
	wlb_length_list_free(&documents);
	wlb_length_list_free(&spans);
}

/* Of a document of 2^40 tokens no more than others in proportion. */
static void of_many_spans_it_takes_a_part(void **state)
{
	(void)state;
	static const int64_t tokens[] = {3, WLB_LENGTH_MAX_TOKENS, 3, WLB_LENGTH_MAX_TOKENS / 4};
	struct wlb_length_list documents = list_of(tokens, 4), spans = {0};
	struct wlb_error error;
	assert_int_equal(wlb_spans_of_documents(&documents, 1, &spans, &error), 0);
	assert_int_equal(spans.count, WLB_SPANS_MOST);
	assert_int_equal(spans.total_tokens, WLB_SPANS_MOST);
	wlb_length_list_free(&documents);
	wlb_length_list_free(&spans);
}

static void documents_without_a_target_are_refused(void **state)
{
	(void)state;
	static const int64_t tokens[] = {0, 1, 1};
	struct wlb_length_list documents = list_of(tokens, 3), spans = {0};
	struct wlb_error error;
	assert_int_equal(wlb_spans_of_documents(&documents, 8, &spans, &error), -1);
	assert_says(error.message, "none of 3 documents has two tokens");
	assert_int_equal(spans.count, 0);
	wlb_length_list_free(&documents);
}

enum { DOCUMENTS = 2000, SEQ_LENGTH = 128, WINDOWS = 2, STEPS = 1000 };

static double tokens_of_schedule(void **state, const int32_t *lengths)
{
	static struct index_file file;
	struct wlb_error error;
	const struct wlb_span *spans;
	int64_t tokens = 0;
	index_file_init(&file, 1, 1, lengths, DOCUMENTS);
	index_file_write(&file, state);
	index_file_write_tokens(&file, 100, state);
	struct wlb_dataset *dataset;
	assert_int_equal(wlb_dataset_open(fixture_path(state, "x"), &dataset, &error), 0);
	struct wlb_schedule *schedule = wlb_schedule_new(dataset, SEQ_LENGTH, WINDOWS, 1, &error);
	assert_non_null(schedule);
	for (int step = 0; step < STEPS; step++)
		for (int left = wlb_schedule_next(schedule, &spans, &error); left > 0; left--)
			tokens += spans[left - 1].tokens;
	wlb_schedule_free(schedule);
	wlb_dataset_close(dataset);
	return (double)tokens / STEPS;
}

static double tokens_of_batches(const struct wlb_length_list *list)
{
	struct wlb_length_stream stream = {.list = list, .repeat = true};
	struct wlb_batches batches;
	struct wlb_error error;
	int64_t tokens = 0;
	wlb_batches_init(&batches, wlb_length_stream_next, &stream, SEQ_LENGTH, (int64_t)WINDOWS * SEQ_LENGTH);
	for (int step = 0; step < STEPS; step++) {
		assert_int_equal(wlb_batches_next(&batches, &error), 1);
		tokens += batches.tokens;
	}
	wlb_batches_free(&batches);
	return (double)tokens / STEPS;
}

/* Documents of 100 to 150 tokens in steps of two windows of 128: where the rest of a cut document follows it, steps
 * have 79 % of their tokens, and where it is in another step 86 %. */
static void steps_are_as_full_as_those_of_the_trainer(void **state)
{
	int32_t lengths[DOCUMENTS];
	struct wlb_length_list documents = {0}, spans = {0};
	struct wlb_error error;
	for (int i = 0; i < DOCUMENTS; i++)
		assert_int_equal(wlb_length_list_add(&documents, 101 + i % 51, &error), 0);
	wlb_length_list_shuffle(&documents, 0);
	for (int i = 0; i < DOCUMENTS; i++)
		lengths[i] = (int32_t)documents.tokens[i];
	assert_int_equal(wlb_spans_of_documents(&documents, SEQ_LENGTH, &spans, &error), 0);
	double trained = tokens_of_schedule(state, lengths);
	double expected = tokens_of_batches(&spans), uncut = tokens_of_batches(&documents);
	assert_true(expected > 0.98 * trained && expected < 1.02 * trained);
	assert_true(uncut < 0.97 * trained);
	wlb_length_list_free(&documents);
	wlb_length_list_free(&spans);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(cuts_documents_as_the_trainer_does),
		TEST(of_many_spans_it_takes_a_part),
		TEST(documents_without_a_target_are_refused),
		TEST(steps_are_as_full_as_those_of_the_trainer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
