/*
 * Splits a stream of bytes, which come in any pieces, into lines of bounded length. A longer line is skipped whole and
 * counted: no part of it is taken for a line. What follows the last newline is no line yet, since its writer may not
 * have written it all.
 */
#ifndef FOLLOW_LINES_H
#define FOLLOW_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WLB_LINES_SIZE = 65536 }; /* bytes of a line with its NUL */

/* All zero, but for `ends_at_return` and the offsets, before the first byte. */
struct wlb_lines {
	bool ends_at_return;   /* a carriage return ends a line too: progress bars write one before each state */
	int64_t line_at;       /* where in the stream the line that was returned last begins */
	int64_t next_at;       /* where the line after it begins: a reader that is started again continues there */
	int64_t fed_at;        /* where the byte after the last one that was taken is */
	int64_t skipped_lines; /* too long */
	bool is_skipping;
	size_t used;
	char line[WLB_LINES_SIZE];
};

/* Begins a stream at that offset. */
void wlb_lines_begin(struct wlb_lines *lines, int64_t offset, bool ends_at_return);

/* Takes bytes until a line is complete. Returns it, without its end and with a NUL behind it, or NULL when all bytes
 * are taken; *bytes and *count are what is left, *length (NUL bytes of the line count) is set with a line. The line is
 * valid until the next call, which may change it. */
char *wlb_lines_next(struct wlb_lines *lines, const char **bytes, size_t *count, size_t *length);

#endif
