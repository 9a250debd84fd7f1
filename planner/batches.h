/* Cuts a stream of documents into the global batches of training steps. */
#ifndef PLANNER_BATCHES_H
#define PLANNER_BATCHES_H

#include <stdbool.h>
#include <stddef.h>

#include "libwlb/wlb.h"

struct wlb_batches {
	bool (*next)(void *context, int64_t *tokens); /* the next document; false: there are no more */
	void *context;
	int64_t seq_length;     /* documents are cut at its multiples */
	int64_t max_tokens;     /* of a batch: N * seq_length */
	struct wlb_span left;   /* of the document that did not fit the last batch */
	struct wlb_span *spans; /* the newest batch; owned */
	size_t count, capacity;
	int64_t tokens; /* in it */
};

/* Documents are counted from 0. */
void wlb_batches_init(struct wlb_batches *batches, bool (*next)(void *context, int64_t *tokens), void *context,
                      int64_t seq_length, int64_t max_tokens);

/* Makes the next batch: spans of documents until the next would make it longer than max_tokens. Returns 1 with a batch;
 * 0 if the documents ended before it was full: spans then holds the last of them, if any; -1 if out of memory. */
int wlb_batches_next(struct wlb_batches *batches, struct wlb_error *error);
void wlb_batches_free(struct wlb_batches *batches);

#endif
