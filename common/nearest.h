/* The name that a mistyped word stands for. */
#ifndef COMMON_NEAREST_H
#define COMMON_NEAREST_H

#include <stddef.h>

/* Where a search for the nearest name is; begins as {.word = WORD}. */
struct wlb_nearest {
	const char *word;
	const char *name; /* the nearest so far, of the caller's; NULL: none is near */
	int distance;
};

/* Takes a name into account. It is near where at most one of four of the word's letters, and one more, are wrong: left
 * out, added, replaced, or exchanged with the next one, each of which counts as one (Damerau and Levenshtein, the
 * optimal string alignment). Of equally near names the first stays. Words and names of more than 32 bytes are near
 * nothing. */
void wlb_nearest_consider(struct wlb_nearest *nearest, const char *name);

#endif
