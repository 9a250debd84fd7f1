/* A table whose columns are as wide as their content. */
#ifndef COMMON_OUTPUT_TABLE_H
#define COMMON_OUTPUT_TABLE_H

#include <stdio.h>

enum { WLB_TABLE_COLUMNS = 12 };

struct wlb_table {
	int columns;
	const char *right; /* one character a column: 'r' aligns right, anything else left */
	char **cells;      /* rows * columns, owned */
	int rows;
	int failed;       /* out of memory: the table prints nothing */
	int note_columns; /* lines of notes are no longer, the indents included */
	char **notes;     /* [note_count] of the first rows, owned; NULL: the row has none */
	int note_count;
};

/* Copies the strings; there is one for each column. */
void wlb_table_add(struct wlb_table *table, const char *const *cells);

/* Copies a text that is printed below the row that was added last, wrapped and further to the right. */
void wlb_table_note(struct wlb_table *table, const char *text);

/* Prints each row after `indent` and frees the table. Returns -1 if out of memory. */
int wlb_table_print(struct wlb_table *table, const char *indent, FILE *out);

#endif
