/* Sets of bytes in a pattern: \d and other escapes, [...]. */
#ifndef FOLLOW_PATTERN_CLASS_H
#define FOLLOW_PATTERN_CLASS_H

#include <stddef.h>
#include <stdint.h>

/* Adds to the set what the text has at byte *at, behind a backslash or a [, and moves *at behind it. Returns 0, or -1
 * with the reason in *why, which is not freed. */
int wlb_pattern_read_escape(const char *text, size_t *at, uint64_t set[4], const char **why);
int wlb_pattern_read_class(const char *text, size_t *at, uint64_t set[4], const char **why);

#endif
