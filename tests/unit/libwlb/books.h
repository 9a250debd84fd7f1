/* Accounts for every token that enters a packer and is packed. */
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

/* Also checks the properties of every step: loads that are the sums of the spans, none above max_tokens, spans by
 * micro-batch, none empty, none waiting longer than max_delay_steps (negative: any), held tokens that are right. */
void books_out(struct books *books, const struct wlb_step *step, int64_t max_tokens, int32_t max_delay_steps);

/* Checks that every token that entered was packed exactly once. Empties the books. */
void books_close(struct books *books);

#endif
