/* Which columns of a table a row has, and how wide they are. */
#ifndef COMMON_OUTPUT_TABLE_FIT_H
#define COMMON_OUTPUT_TABLE_FIT_H

#include "common/output/table.h"

enum wlb_column_place { WLB_COLUMN_IN_ROW, WLB_COLUMN_BELOW, WLB_COLUMN_LEFT_OUT };

struct wlb_column {
	enum wlb_column_place place;
	int width; /* of its cells, in columns of the terminal */
};

/* Sets all `table->columns` by the steps that struct wlb_table has, for rows behind `indent` spaces. A row may be
 * longer than the table's width where no column gives more. */
void wlb_table_fit(const struct wlb_table *table, int indent, struct wlb_column *columns);

#endif
