/* Rows with a value for each of several things, which stand side by side as far as the terminal is wide enough. */
#ifndef COMMON_OUTPUT_SIDE_BY_SIDE_H
#define COMMON_OUTPUT_SIDE_BY_SIDE_H

#include <stdio.h>

struct wlb_side_row {
	char *name;    /* owned */
	char **values; /* [count], owned */
};

struct wlb_sides {
	int count;                 /* of things */
	const char *const *titles; /* [count] */
	struct wlb_side_row *rows; /* [row_count], owned */
	int row_count;
	int failed; /* out of memory: nothing is printed */
};

/* Copies the name and the values, of which there are `count`. */
void wlb_sides_add(struct wlb_sides *sides, const char *name, const char *const *values);

/* Prints the rows in lines of at most `columns`, with as many things beside each other as fit, at least one, and the
 * others in the same way below; a name or a value that is longer than its column is cut, with a '+' at its end. Frees
 * the rows. Returns -1 if out of memory. */
int wlb_sides_print(struct wlb_sides *sides, int columns, FILE *out);

#endif
