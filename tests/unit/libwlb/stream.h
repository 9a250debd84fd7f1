/* Random global batches, and the books of every token that went in and came out. */
#ifndef WLB_TEST_STREAM_H
#define WLB_TEST_STREAM_H

#include "libwlb/wlb.h"

/* 7B class: attention weighs as much as the linear part at 49,400 tokens. */
extern const struct wlb_model stream_model;

uint64_t stream_random(uint64_t *state);

/* The documents of wlb_lengths, cut at the window, in global batches of at most N windows. */
struct stream {
	struct wlb_lengths lengths;
	struct wlb_span left;
	struct wlb_span *batch;
	size_t capacity;
	int64_t longest; /* documents above it are shortened to it; 0: as they come */
};
size_t stream_next(struct stream *stream, int64_t seq_length, int32_t micro_batches);
void stream_free(struct stream *stream);

struct books {
	struct wlb_span *in;
	size_t in_count, in_capacity;
	struct wlb_span *out;
	size_t out_count, out_capacity;
	int64_t in_tokens, out_tokens;
};
void books_in(struct books *books, const struct wlb_span *spans, size_t count);

/* Also checks what every step promises: loads that are the sums of the pieces, none above max_tokens, pieces by
 * micro-batch, none empty, none waiting longer than max_delay_steps (negative: any), held tokens that are right. */
void books_out(struct books *books, const struct wlb_step *step, int64_t max_tokens, int32_t max_delay_steps);

/* What came out is what went in: nothing lost, nothing twice. Empties the books. */
void books_close(struct books *books);

#endif
