#include "common/output/table_fit.h"

#include "common/output/wrap.h"

enum { GAP = 2, CUT_LEAST = 8 };

static char letter_of(const char *letters, int column)
{
	return letters != NULL ? letters[column] : '-';
}

static bool can_cut(const struct wlb_table *table, int column)
{
	return letter_of(table->shrink, column) == 'c';
}

/* The width to which a column can be cut: its title stays whole. */
static int least_width(const struct wlb_table *table, int column, int width)
{
	int title = table->is_untitled ? 0 : wlb_text_width(table->cells[column]);
	int least = title > CUT_LEAST ? title : CUT_LEAST;
	return can_cut(table, column) && width > least ? least : width;
}

/* The length of a row; is_least: with every text cut that can be. */
static int row_length(const struct wlb_table *table, const struct wlb_column *columns, bool is_least)
{
	int length = -GAP;
	for (int i = 0; i < table->columns; i++)
		if (columns[i].place == WLB_COLUMN_IN_ROW)
			length += GAP + (is_least ? least_width(table, i, columns[i].width) : columns[i].width);
	return length;
}

static void measure(const struct wlb_table *table, struct wlb_column *columns)
{
	for (int i = 0; i < table->columns; i++)
		columns[i] = (struct wlb_column){WLB_COLUMN_IN_ROW, 0};
	for (int i = 0; i < table->rows * table->columns; i++) {
		int width = wlb_text_width(table->cells[i]);
		if (width > columns[i % table->columns].width)
			columns[i % table->columns].width = width;
	}
}

/* Cuts the widest column by one; returns false where none can be cut. */
static bool cut_one(const struct wlb_table *table, struct wlb_column *columns)
{
	int widest = -1;
	for (int i = 0; i < table->columns; i++)
		if (columns[i].place == WLB_COLUMN_IN_ROW &&
		    least_width(table, i, columns[i].width) < columns[i].width &&
		    (widest < 0 || columns[i].width > columns[widest].width))
			widest = i;
	if (widest >= 0)
		columns[widest].width--;
	return widest >= 0;
}

void wlb_table_fit(const struct wlb_table *table, int indent, struct wlb_column *columns)
{
	int room = table->width - indent;
	measure(table, columns);
	if (table->width == 0 || row_length(table, columns, false) <= room)
		return;
	for (int i = 0; i < table->columns; i++)
		if (letter_of(table->shrink, i) == 'n')
			columns[i].place = WLB_COLUMN_BELOW;
	for (char digit = '9'; digit >= '1'; digit--)
		for (int i = table->columns - 1; i >= 0 && row_length(table, columns, true) > room; i--)
			if (letter_of(table->leave, i) == digit)
				columns[i].place = WLB_COLUMN_LEFT_OUT;
	while (row_length(table, columns, false) > room && cut_one(table, columns))
		;
}
