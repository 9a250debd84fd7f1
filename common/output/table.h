/* A table whose columns are as wide as their content, or as the terminal lets them be. */
#ifndef COMMON_OUTPUT_TABLE_H
#define COMMON_OUTPUT_TABLE_H

#include <stdbool.h>
#include <stdio.h>

enum { WLB_TABLE_COLUMNS = 32 };

struct wlb_table {
	int columns;
	const char *right; /* one character a column: 'r' aligns right, anything else left; 's' is left, a state: in its
	                      colour where has_colours */
	char **cells;      /* rows * columns, owned */
	int rows;
	int failed;       /* out of memory: the table prints nothing */
	int note_columns; /* lines of notes are no longer, the indents included */
	char **notes;     /* [note_count] of the first rows, owned; NULL: the row has none */
	int note_count;

	/* A row that is longer than `width`, the indent included, becomes shorter in these steps, until it fits:
	 * 1. the texts of columns 'n' of `shrink` are printed below their rows, as notes;
	 * 2. columns with a digit in `leave` are left out, '9' first, '1' last;
	 * 3. the texts of columns 'c' of `shrink` are cut, the widest first; a '+' is at their end, as in sacct.
	 * Step 2 leaves out no column that step 3 makes room for. 0: rows are as long as their content. */
	int width;
	const char *shrink, *leave; /* one character a column; '-': it gives nothing; NULL: none gives */
	bool has_colours;
	bool is_untitled; /* the first row is content as well */

	unsigned left_out; /* set by wlb_table_print: bit i: column i was left out */
};

/* Has it fit the terminal of standard output, with notes and colours; where that is none, rows are as long as their
 * content. */
void wlb_table_fit_terminal(struct wlb_table *table);

/* Copies the strings; there is one for each column. */
void wlb_table_add(struct wlb_table *table, const char *const *cells);

/* Copies a text that is printed below the row that was added last, wrapped and further to the right. */
void wlb_table_note(struct wlb_table *table, const char *text);

/* Prints each row after `indent` and frees the table. Returns -1 if out of memory. */
int wlb_table_print(struct wlb_table *table, const char *indent, FILE *out);

/* After that, names the columns that were left out, by their titles, and says where they are; nothing where none was.
 */
void wlb_table_name_left_out(const struct wlb_table *table, const char *const *titles, const char *where, int indent,
                             FILE *out);

#endif
