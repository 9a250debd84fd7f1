#include "common/output/fit_columns.h"

#include <stdbool.h>
#include <stddef.h>

enum { GAP = 2, CUT_LEAST = 8 };

/* The width to which a column can be cut: its title stays whole. */
static int least_width(const struct wlb_column *column)
{
	int least = column->title_width > CUT_LEAST ? column->title_width : CUT_LEAST;
	return column->shrink == 'c' && column->width > least ? least : column->width;
}

/* The length of a row; is_least: with every text cut that can be. */
static int row_length(const struct wlb_column *columns, int count, bool is_least)
{
	int length = -GAP;
	for (int i = 0; i < count; i++)
		if (columns[i].place == WLB_COLUMN_IN_ROW)
			length += GAP + (is_least ? least_width(&columns[i]) : columns[i].width);
	return length;
}

/* Cuts the widest column by one; returns false where none can be cut. */
static bool cut_one(struct wlb_column *columns, int count)
{
	struct wlb_column *widest = NULL;
	for (struct wlb_column *column = columns; column < columns + count; column++)
		if (column->place == WLB_COLUMN_IN_ROW && least_width(column) < column->width &&
		    (widest == NULL || column->width > widest->width))
			widest = column;
	if (widest != NULL)
		widest->width--;
	return widest != NULL;
}

void wlb_columns_fit(struct wlb_column *columns, int count, int width)
{
	if (row_length(columns, count, false) <= width)
		return;
	for (int i = 0; i < count; i++)
		if (columns[i].shrink == 'n')
			columns[i].place = WLB_COLUMN_BELOW;
	for (char digit = '9'; digit >= '1'; digit--)
		for (int i = count - 1; i >= 0 && row_length(columns, count, true) > width; i--)
			if (columns[i].leave == digit)
				columns[i].place = WLB_COLUMN_LEFT_OUT;
	while (row_length(columns, count, false) > width && cut_one(columns, count))
		;
}
