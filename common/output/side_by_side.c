#include "common/output/side_by_side.h"

#include <stdlib.h>
#include <string.h>

#include "common/output/wrap.h"

enum { INDENT = 2, GAP = 2, VALUE_MIN = 8, VALUE_MAX = 28 };

void wlb_sides_add(struct wlb_sides *sides, const char *name, const char *const *values)
{
	struct wlb_side_row *more = realloc(sides->rows, sizeof(*more) * (size_t)(sides->row_count + 1));
	if (more == NULL) {
		sides->failed = 1;
		return;
	}
	sides->rows = more;
	struct wlb_side_row *row = &more[sides->row_count++];
	row->name = strdup(name);
	row->values = calloc((size_t)sides->count, sizeof(*row->values));
	sides->failed |= row->name == NULL || row->values == NULL;
	for (int i = 0; row->values != NULL && i < sides->count; i++) {
		row->values[i] = strdup(values[i]);
		sides->failed |= row->values[i] == NULL;
	}
}

static int wider(int width, const char *text)
{
	int own = wlb_text_width(text);
	return own > width ? own : width;
}

static void print_cell(const char *text, int width, int is_right, FILE *out)
{
	int used = wlb_text_width(text), is_cut = used > width;
	size_t bytes = is_cut ? wlb_text_fit(text, width - 1, &used) : strlen(text);
	int pad = width - used - is_cut;
	fprintf(out, "%*s%.*s%s%*s", is_right ? pad : 0, "", (int)bytes, text, is_cut ? "+" : "", is_right ? 0 : pad,
	        "");
}

/* Prints the things from first to last - 1. */
static void print_group(const struct wlb_sides *sides, int first, int last, int name_width, const int *widths,
                        FILE *out)
{
	for (int row = -1; row < sides->row_count; row++) {
		fprintf(out, "%*s", INDENT, "");
		print_cell(row < 0 ? "" : sides->rows[row].name, name_width, 0, out);
		for (int i = first; i < last; i++) {
			fprintf(out, "%*s", GAP, "");
			print_cell(row < 0 ? sides->titles[i] : sides->rows[row].values[i], widths[i], 1, out);
		}
		fputc('\n', out);
	}
}

static void print_groups(const struct wlb_sides *sides, int columns, int *widths, FILE *out)
{
	int name_width = 0, name_most = columns - INDENT - GAP - VALUE_MIN;
	for (int row = 0; row < sides->row_count; row++)
		name_width = wider(name_width, sides->rows[row].name);
	if (name_width > name_most)
		name_width = name_most > VALUE_MIN ? name_most : VALUE_MIN;
	int width = columns - INDENT - name_width, most = width - GAP < VALUE_MAX ? width - GAP : VALUE_MAX;
	for (int i = 0; i < sides->count; i++) {
		widths[i] = wlb_text_width(sides->titles[i]);
		for (int row = 0; row < sides->row_count; row++)
			widths[i] = wider(widths[i], sides->rows[row].values[i]);
		if (widths[i] > most)
			widths[i] = most > VALUE_MIN ? most : VALUE_MIN;
	}
	for (int first = 0, last; first < sides->count; first = last) {
		int used = GAP + widths[first];
		for (last = first + 1; last < sides->count && used + GAP + widths[last] <= width; last++)
			used += GAP + widths[last];
		if (first > 0)
			fputc('\n', out);
		print_group(sides, first, last, name_width, widths, out);
	}
}

int wlb_sides_print(struct wlb_sides *sides, int columns, FILE *out)
{
	int *widths = calloc((size_t)sides->count + 1, sizeof(*widths));
	int rc = sides->failed || widths == NULL ? -1 : 0;
	if (rc == 0)
		print_groups(sides, columns, widths, out);
	for (int row = 0; row < sides->row_count; row++) {
		for (int i = 0; sides->rows[row].values != NULL && i < sides->count; i++)
			free(sides->rows[row].values[i]);
		free(sides->rows[row].values);
		free(sides->rows[row].name);
	}
	free(sides->rows);
	free(widths);
	return rc;
}
