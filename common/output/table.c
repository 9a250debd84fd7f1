#include "common/output/table.h"

#include <stdlib.h>
#include <string.h>

#include "common/output/colour.h"
#include "common/output/fit_columns.h"
#include "common/output/terminal.h"
#include "common/output/wrap.h"

enum { NOTE_INDENT = 4 };

void wlb_table_fit_terminal(struct wlb_table *table)
{
	table->width = wlb_terminal_width();
	table->note_columns = table->width > 0 ? table->width : wlb_terminal_columns();
	table->has_colours = wlb_colour_shown();
}

void wlb_table_add(struct wlb_table *table, const char *const *cells)
{
	size_t columns = (size_t)table->columns, used = columns * (size_t)table->rows;
	char **more = realloc(table->cells, sizeof(char *) * (used + columns));
	if (more == NULL) {
		table->failed = 1;
		return;
	}
	table->cells = more;
	for (size_t i = 0; i < columns; i++) {
		more[used + i] = strdup(cells[i]);
		table->failed |= more[used + i] == NULL;
	}
	table->rows++;
}

void wlb_table_note(struct wlb_table *table, const char *text)
{
	size_t last = (size_t)table->rows - 1;
	char **more = realloc(table->notes, sizeof(char *) * (last + 1));
	if (more == NULL) {
		table->failed = 1;
		return;
	}
	table->notes = more;
	while ((size_t)table->note_count < last)
		more[table->note_count++] = NULL;
	more[last] = strdup(text);
	table->failed |= more[last] == NULL;
	table->note_count = (int)last + 1;
}

/* Prints a text in at most `width` columns, and returns how many it took. */
static int print_cut(const char *text, int width, const char *colour, FILE *out)
{
	int used = wlb_text_width(text);
	bool is_cut = used > width;
	size_t bytes = is_cut ? wlb_text_fit(text, width - 1, &used) : strlen(text);
	if (colour != NULL)
		fprintf(out, "\033[%sm", colour);
	fprintf(out, "%.*s%s", (int)bytes, text, is_cut ? "+" : "");
	if (colour != NULL)
		fputs("\033[0m", out);
	return used + is_cut;
}

/* `last`: of the columns in the row. */
static void print_row(const struct wlb_table *table, int row, const struct wlb_column *columns, int last, FILE *out)
{
	const char *gap = "";
	for (int i = 0; i <= last; i++) {
		const char *cell = table->cells[row * table->columns + i];
		int width = columns[i].width;
		if (columns[i].place != WLB_COLUMN_IN_ROW)
			continue;
		bool is_state = table->has_colours && table->right[i] == 's';
		fputs(gap, out);
		int pad = width - wlb_text_width(cell);
		if (table->right[i] == 'r' && pad > 0)
			fprintf(out, "%*s", pad, "");
		int used = print_cut(cell, width, is_state ? wlb_colour_of_state(cell) : NULL, out);
		if (table->right[i] != 'r' && i < last)
			fprintf(out, "%*s", width - used, "");
		gap = "  ";
	}
	fputc('\n', out);
}

static void print_notes(const struct wlb_table *table, int row, const struct wlb_column *columns, const char *indent,
                        FILE *out)
{
	int column = wlb_text_width(indent) + NOTE_INDENT;
	for (int i = 0; i < table->columns; i++) {
		const char *cell = table->cells[row * table->columns + i];
		bool is_title = row == 0 && !table->is_untitled;
		if (columns[i].place == WLB_COLUMN_BELOW && !is_title && *cell != '\0')
			wlb_wrap_print(cell, column, table->note_columns, out);
	}
	if (row < table->note_count && table->notes[row] != NULL)
		wlb_wrap_print(table->notes[row], column, table->note_columns, out);
}

static void release(struct wlb_table *table)
{
	for (int i = 0; i < table->rows * table->columns; i++)
		free(table->cells[i]);
	free(table->cells);
	for (int i = 0; i < table->note_count; i++)
		free(table->notes[i]);
	free(table->notes);
}

static char letter_of(const char *letters, int column)
{
	return letters != NULL ? letters[column] : '-';
}

static void measure(const struct wlb_table *table, struct wlb_column *columns)
{
	for (int i = 0; i < table->columns; i++)
		columns[i] =
			(struct wlb_column){.shrink = letter_of(table->shrink, i), .leave = letter_of(table->leave, i)};
	for (int i = 0; i < table->rows * table->columns; i++) {
		struct wlb_column *column = &columns[i % table->columns];
		int width = wlb_text_width(table->cells[i]);
		if (i < table->columns && !table->is_untitled)
			column->title_width = width;
		if (width > column->width)
			column->width = width;
	}
}

int wlb_table_print(struct wlb_table *table, const char *indent, FILE *out)
{
	struct wlb_column columns[WLB_TABLE_COLUMNS];
	int last = 0;
	if (!table->failed)
		measure(table, columns);
	if (!table->failed && table->width > 0)
		wlb_columns_fit(columns, table->columns, table->width - wlb_text_width(indent));
	for (int i = 0; !table->failed && i < table->columns; i++) {
		last = columns[i].place == WLB_COLUMN_IN_ROW ? i : last;
		table->left_out |= (unsigned)(columns[i].place == WLB_COLUMN_LEFT_OUT) << i;
	}
	for (int row = 0; !table->failed && row < table->rows; row++) {
		fputs(indent, out);
		print_row(table, row, columns, last, out);
		print_notes(table, row, columns, indent, out);
	}
	release(table);
	return table->failed ? -1 : 0;
}

void wlb_table_name_left_out(const struct wlb_table *table, const char *const *titles, const char *where, int indent,
                             FILE *out)
{
	char text[1024] = "";
	for (int i = 0; i < table->columns; i++)
		if ((table->left_out >> i & 1) != 0)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
			         *text != '\0' ? ", " : "no room for ", titles[i]);
	if (table->left_out == 0)
		return;
	snprintf(text + strlen(text), sizeof(text) - strlen(text), ": %s", where);
	wlb_wrap_print(text, indent, table->note_columns, out);
}
