/* The books of every token that goes into a packer and comes out. */
#ifndef TESTS_UNIT_LIBWLB_BOOKS_H
#define TESTS_UNIT_LIBWLB_BOOKS_H

#include "libwlb/wlb.h"

struct books {
	struct wlb_span *in;
	size_t in_count, in_capacity;
	struct wlb_span *out;
	size_t out_count, out_capacity;
	int64_t in_tokens, out_tokens;
};
void books_in(struct books *books, const struct wlb_span *spans, size_t count);

/* Also checks what every step promises: loads that are the sums of the spans, none above max_tokens, spans by
 * micro-batch, none empty, none waiting longer than max_delay_steps (negative: any), held tokens that are right. */
void books_out(struct books *books, const struct wlb_step *step, int64_t max_tokens, int32_t max_delay_steps);

/* What came out is what went in: nothing lost, nothing twice. Empties the books. */
void books_close(struct books *books);

#endif
