#include "planner/length_list.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Keeps a sum of lengths far from 2^63. */
static const int64_t most_tokens = INT64_C(1) << 60;

int wlb_length_list_add(struct wlb_length_list *list, int64_t tokens, struct wlb_error *error)
{
	if (tokens < 0 || tokens > WLB_LENGTH_MAX_TOKENS)
		return wlb_fail(error, "a length of %" PRId64 " tokens: must be from 0 to %" PRId64, tokens,
		                WLB_LENGTH_MAX_TOKENS);
	if (tokens > most_tokens - list->total_tokens)
		return wlb_fail(error, "more than %" PRId64 " tokens in all: give fewer documents", most_tokens);
	if (list->count == WLB_LENGTHS_MOST)
		return wlb_fail(error, "more than %d documents: give the lengths of some of them", WLB_LENGTHS_MOST);
	if (list->count == list->capacity) {
		size_t capacity = 2 * list->capacity + 1024;
		int64_t *grown = reallocarray(list->tokens, capacity, sizeof(*grown));
		if (grown == NULL)
			return wlb_fail(error, "out of memory for the lengths of %zu documents", capacity);
		list->tokens = grown;
		list->capacity = capacity;
	}
	list->tokens[list->count++] = tokens;
	list->total_tokens += tokens;
	return 0;
}

void wlb_length_list_shuffle(struct wlb_length_list *list, size_t first)
{
	uint64_t state = 1;
	for (size_t left = list->count - first; left > 1; left--) {
		state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		int64_t *last = &list->tokens[first + left - 1], *other = &list->tokens[first + (state >> 33) % left];
		int64_t swapped = *last;
		*last = *other;
		*other = swapped;
	}
}

void wlb_length_list_free(struct wlb_length_list *list)
{
	free(list->tokens);
	memset(list, 0, sizeof(*list));
}

bool wlb_length_stream_next(void *context, int64_t *tokens)
{
	struct wlb_length_stream *stream = context;
	if (stream->taken == stream->list->count && stream->repeat)
		stream->taken = 0;
	if (stream->taken == stream->list->count)
		return false;
	*tokens = stream->list->tokens[stream->taken++];
	return true;
}
