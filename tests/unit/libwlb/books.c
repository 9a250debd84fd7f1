#include "books.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void add(struct wlb_span **spans, size_t *count, size_t *capacity, struct wlb_span span)
{
	if (*count == *capacity) {
		*capacity = 2 * *capacity + 64;
		*spans = realloc(*spans, *capacity * sizeof(**spans));
		assert_non_null(*spans);
	}
	(*spans)[(*count)++] = span;
}

void books_in(struct books *books, const struct wlb_span *spans, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		add(&books->in, &books->in_count, &books->in_capacity, spans[i]);
		books->in_tokens += spans[i].tokens;
	}
}

static void check_loads(const struct wlb_step *step, int64_t max_tokens)
{
	int64_t *tokens = calloc((size_t)step->micro_batches, sizeof(*tokens));
	assert_non_null(tokens);
	for (size_t i = 0; i < step->count; i++) {
		int32_t bin = step->spans[i].micro_batch;
		assert_in_range(bin, 0, step->micro_batches - 1);
		assert_true(i == 0 || bin >= step->spans[i - 1].micro_batch);
		tokens[bin] += step->spans[i].span.tokens;
	}
	for (int32_t b = 0; b < step->micro_batches; b++) {
		assert_int_equal(tokens[b], step->loads[b].tokens);
		assert_true(tokens[b] <= max_tokens);
	}
	free(tokens);
}

void books_out(struct books *books, const struct wlb_step *step, int64_t max_tokens, int32_t max_delay_steps)
{
	int64_t tokens = 0;
	check_loads(step, max_tokens);
	for (size_t i = 0; i < step->count; i++) {
		const struct wlb_packed_span *span = &step->spans[i];
		assert_true(span->span.tokens > 0);
		assert_true(span->waited_steps >= 0);
		assert_true(max_delay_steps < 0 || span->waited_steps <= max_delay_steps);
		add(&books->out, &books->out_count, &books->out_capacity, span->span);
		tokens += span->span.tokens;
	}
	assert_int_equal(tokens, step->tokens);
	books->out_tokens += tokens;
	assert_int_equal(step->held_tokens, books->in_tokens - books->out_tokens);
}

static int by_place(const void *a, const void *b)
{
	const struct wlb_span *x = a, *y = b;
	if (x->document != y->document)
		return x->document < y->document ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

/* Sorts, drops what is empty and joins neighbours, so that cuts make no difference. */
static size_t normalise(struct wlb_span *spans, size_t count)
{
	size_t kept = 0;
	if (count > 0)
		qsort(spans, count, sizeof(*spans), by_place);
	for (size_t i = 0; i < count; i++) {
		if (spans[i].tokens == 0)
			continue;
		struct wlb_span *last = kept > 0 ? &spans[kept - 1] : NULL;
		if (last != NULL && last->document == spans[i].document && last->start + last->tokens == spans[i].start)
			last->tokens += spans[i].tokens;
		else
			spans[kept++] = spans[i];
	}
	return kept;
}

void books_close(struct books *books)
{
	books->in_count = normalise(books->in, books->in_count);
	books->out_count = normalise(books->out, books->out_count);
	assert_int_equal(books->in_count, books->out_count);
	for (size_t i = 0; i < books->in_count; i++) {
		assert_int_equal(books->in[i].document, books->out[i].document);
		assert_int_equal(books->in[i].start, books->out[i].start);
		assert_int_equal(books->in[i].tokens, books->out[i].tokens);
	}
	free(books->in);
	free(books->out);
	memset(books, 0, sizeof(*books));
}
