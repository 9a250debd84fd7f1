#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "planner/batches.h"

struct stream {
	const int64_t *lengths;
	size_t count;
};

static bool next_document(void *context, int64_t *tokens)
{
	struct stream *stream = context;
	if (stream->count == 0)
		return false;
	*tokens = *stream->lengths++;
	stream->count--;
	return true;
}

static void check_span(const struct wlb_span *span, int64_t document, int64_t start, int64_t tokens)
{
	assert_int_equal(span->document, document);
	assert_int_equal(span->start, start);
	assert_int_equal(span->tokens, tokens);
}

static void fills_batches_with_documents(void **state)
{
	static const int64_t lengths[] = {3, 0, 5, 6, 4, 1};
	struct stream stream = {lengths, 6};
	struct wlb_batches batches;
	struct wlb_error error;
	(void)state;
	wlb_batches_init(&batches, next_document, &stream, 8, 10);
	assert_int_equal(wlb_batches_next(&batches, &error), 1);
	assert_int_equal(batches.count, 2);
	check_span(&batches.spans[0], 0, 0, 3);
	check_span(&batches.spans[1], 2, 0, 5);
	assert_int_equal(wlb_batches_next(&batches, &error), 1);
	assert_int_equal(batches.tokens, 10);
	check_span(&batches.spans[0], 3, 0, 6);
	assert_int_equal(wlb_batches_next(&batches, &error), 0);
	assert_int_equal(batches.count, 1);
	check_span(&batches.spans[0], 5, 0, 1);
	assert_int_equal(wlb_batches_next(&batches, &error), 0);
	assert_int_equal(batches.count, 0);
	wlb_batches_free(&batches);
}

static void cuts_at_multiples_of_the_window(void **state)
{
	static const int64_t lengths[] = {21};
	struct stream stream = {lengths, 1};
	struct wlb_batches batches;
	struct wlb_error error;
	(void)state;
	wlb_batches_init(&batches, next_document, &stream, 8, 16);
	assert_int_equal(wlb_batches_next(&batches, &error), 1);
	assert_int_equal(batches.count, 2);
	check_span(&batches.spans[1], 0, 8, 8);
	assert_int_equal(wlb_batches_next(&batches, &error), 0);
	check_span(&batches.spans[0], 0, 16, 5);
	wlb_batches_free(&batches);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(fills_batches_with_documents),
	                                   cmocka_unit_test(cuts_at_multiples_of_the_window)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
