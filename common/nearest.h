/* The name that a mistyped word stands for. */
#ifndef COMMON_NEAREST_H
#define COMMON_NEAREST_H

#include <stdbool.h>

/* Where a search for the nearest name is; begins as {.word = WORD}. */
struct wlb_nearest {
	const char *word;
	const char *name; /* the nearest so far, of the caller's; NULL: none is near */
	int distance;
	bool is_as_long; /* as the word */
};

/* Takes a name into account. It is near where at most one of four letters of the word is wrong, or one of fewer than
 * eight: left out, added, replaced, or exchanged with the next one, each of which counts as one (Damerau and
 * Levenshtein, the optimal string alignment). Of equally near names one that is as long as the word is taken, else the
 * first. Words and names of more than 32 bytes are near nothing. */
void wlb_nearest_consider(struct wlb_nearest *nearest, const char *name);

#endif
