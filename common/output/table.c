#include "common/output/table.h"

#include <stdlib.h>
#include <string.h>

#include "common/output/wrap.h"

enum { NOTE_INDENT = 4 };

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

static void print_row(const struct wlb_table *table, int row, const int *widths, FILE *out)
{
	for (int i = 0; i < table->columns; i++) {
		const char *cell = table->cells[row * table->columns + i];
		int pad = widths[i] - wlb_text_width(cell);
		const char *gap = i > 0 ? "  " : "";
		if (table->right[i] == 'r')
			fprintf(out, "%s%*s%s", gap, pad, "", cell);
		else if (i + 1 < table->columns)
			fprintf(out, "%s%s%*s", gap, cell, pad, "");
		else
			fprintf(out, "%s%s", gap, cell);
	}
	fputc('\n', out);
}

static void print_note(const struct wlb_table *table, int row, const char *indent, FILE *out)
{
	int column = wlb_text_width(indent) + NOTE_INDENT;
	wlb_wrap_print(table->notes[row], column, table->note_columns, out);
}

int wlb_table_print(struct wlb_table *table, const char *indent, FILE *out)
{
	int widths[WLB_TABLE_COLUMNS] = {0};
	for (int i = 0; !table->failed && i < table->rows * table->columns; i++) {
		int width = wlb_text_width(table->cells[i]);
		if (width > widths[i % table->columns])
			widths[i % table->columns] = width;
	}
	for (int row = 0; !table->failed && row < table->rows; row++) {
		fputs(indent, out);
		print_row(table, row, widths, out);
		if (row < table->note_count && table->notes[row] != NULL)
			print_note(table, row, indent, out);
	}
	for (int i = 0; i < table->rows * table->columns; i++)
		free(table->cells[i]);
	free(table->cells);
	for (int i = 0; i < table->note_count; i++)
		free(table->notes[i]);
	free(table->notes);
	return table->failed ? -1 : 0;
}
