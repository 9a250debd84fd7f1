#include "coordinator/wlb/report/rank_cells.h"

#include <stdbool.h>
#include <string.h>

enum { CELLS_MAX = 4096, RANK = 0, NODE = 1 };

/* The index of a column of the rows; -1 where they do not have it. */
static int column_of(const json_t *reply, const char *name)
{
	const json_t *columns = json_object_get(reply, "columns"), *column;
	size_t i;
	json_array_foreach(columns, i, column) if (json_is_string(column) &&
	                                           strcmp(json_string_value(column), name) == 0) return (int)i;
	return -1;
}

static const json_t *most_late(const json_t *rows, size_t first, size_t count, int column)
{
	const json_t *most = NULL;
	for (size_t i = first; i < first + count && i < json_array_size(rows); i++) {
		const json_t *late = json_array_get(json_array_get(rows, i), (size_t)column);
		if (json_is_number(late) && (most == NULL || json_number_value(late) > json_number_value(most)))
			most = late;
	}
	return most;
}

/* The index of a node that is named is as in the reply's list, of which the first that cells can name are kept. */
static json_t *nodes_of(const json_t *reply)
{
	json_t *nodes = json_array(), *name;
	size_t i;
	json_array_foreach(json_object_get(reply, "nodes"), i, name) if (i < CELLS_MAX) json_array_append(nodes, name);
	return nodes;
}

json_t *wlb_rank_cells(const json_t *reply)
{
	const json_t *rows = json_object_get(reply, "ranks");
	int column = column_of(reply, "late_us");
	size_t count = json_array_size(rows), each = (count + CELLS_MAX - 1) / CELLS_MAX;
	if (column < 0 || most_late(rows, 0, count, column) == NULL)
		return json_null();
	json_t *cells = json_array();
	for (size_t i = 0; cells != NULL && i < count; i += each) {
		const json_t *row = json_array_get(rows, i), *late = most_late(rows, i, each, column);
		json_int_t node = json_integer_value(json_array_get(row, NODE));
		bool has_node = json_is_integer(json_array_get(row, NODE)) && node < CELLS_MAX;
		json_t *cell =
			json_pack("[I, o, o]", json_integer_value(json_array_get(row, RANK)),
		                  has_node ? json_integer(node) : json_null(),
		                  late != NULL ? json_integer((json_int_t)json_number_value(late)) : json_null());
		if (json_array_append_new(cells, cell) != 0) {
			json_decref(cells);
			return NULL;
		}
	}
	return json_pack("{s:I, s:o, s:o}", "ranks_each", (json_int_t)each, "nodes", nodes_of(reply), "cells", cells);
}
