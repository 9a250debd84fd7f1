#include "planner/batches.h"

#include <stdlib.h>
#include <string.h>

void wlb_batches_init(struct wlb_batches *batches, bool (*next)(void *context, int64_t *tokens), void *context,
                      int64_t seq_length, int64_t max_tokens)
{
	*batches = (struct wlb_batches){
		.next = next,
		.context = context,
		.seq_length = seq_length,
		.max_tokens = max_tokens,
		.left.document = -1,
	};
}

static int add(struct wlb_batches *batches, struct wlb_span span, struct wlb_error *error)
{
	if (batches->count == batches->capacity) {
		size_t capacity = 2 * batches->capacity + 1024;
		struct wlb_span *grown = reallocarray(batches->spans, capacity, sizeof(*grown));
		if (grown == NULL)
			return wlb_fail(error, "out of memory for a batch of %zu documents", capacity);
		batches->spans = grown;
		batches->capacity = capacity;
	}
	batches->spans[batches->count++] = span;
	batches->tokens += span.tokens;
	return 0;
}

/* Finds the next span of the batch: more of the current document, or of the next document that has a token. Returns
 * false if there is none. */
static bool find_span(struct wlb_batches *batches)
{
	struct wlb_span *left = &batches->left;
	while (left->tokens == 0) {
		int64_t tokens;
		if (!batches->next(batches->context, &tokens))
			return false;
		*left = (struct wlb_span){.document = left->document + 1, .tokens = tokens};
	}
	return true;
}

int wlb_batches_next(struct wlb_batches *batches, struct wlb_error *error)
{
	batches->count = 0;
	batches->tokens = 0;
	while (batches->tokens < batches->max_tokens) {
		if (!find_span(batches))
			return 0;
		struct wlb_span span = batches->left;
		if (span.tokens > batches->seq_length)
			span.tokens = batches->seq_length;
		if (span.tokens > batches->max_tokens - batches->tokens)
			return 1;
		if (add(batches, span, error) < 0)
			return -1;
		batches->left.start += span.tokens;
		batches->left.tokens -= span.tokens;
	}
	return 1;
}

void wlb_batches_free(struct wlb_batches *batches)
{
	free(batches->spans);
	memset(batches, 0, sizeof(*batches));
}
