#include "coordinator/wlb/output/table.h"

#include <stdlib.h>
#include <string.h>

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

/* Characters of a UTF-8 text. */
static int text_width(const char *text)
{
	int width = 0;
	for (; *text != '\0'; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

static void print_row(const struct wlb_table *table, int row, const int *widths, FILE *out)
{
	for (int i = 0; i < table->columns; i++) {
		const char *cell = table->cells[row * table->columns + i];
		int pad = widths[i] - text_width(cell);
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

int wlb_table_print(struct wlb_table *table, const char *indent, FILE *out)
{
	int widths[WLB_TABLE_COLUMNS] = {0};
	for (int i = 0; !table->failed && i < table->rows * table->columns; i++) {
		int width = text_width(table->cells[i]);
		if (width > widths[i % table->columns])
			widths[i % table->columns] = width;
	}
	for (int row = 0; !table->failed && row < table->rows; row++) {
		fputs(indent, out);
		print_row(table, row, widths, out);
	}
	for (int i = 0; i < table->rows * table->columns; i++)
		free(table->cells[i]);
	free(table->cells);
	return table->failed ? -1 : 0;
}
