/* Which columns of a table a row has, and how wide they are. */
#ifndef COMMON_OUTPUT_FIT_COLUMNS_H
#define COMMON_OUTPUT_FIT_COLUMNS_H

enum wlb_column_place { WLB_COLUMN_IN_ROW, WLB_COLUMN_BELOW, WLB_COLUMN_LEFT_OUT };

struct wlb_column {
	enum wlb_column_place place;
	int width;          /* of the widest of its cells; then that which each has in the row */
	int title_width;    /* 0: it has none */
	char shrink, leave; /* as in struct wlb_table */
};

/* Sets place and width of the columns, by the steps that struct wlb_table has, so that a row, with two spaces between
 * columns, takes `width` at most. It takes more where no column gives more. */
void wlb_columns_fit(struct wlb_column *columns, int count, int width);

#endif
