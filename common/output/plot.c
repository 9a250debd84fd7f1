#include "common/output/plot.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { COLUMNS_MAX = 200, EIGHTHS = 8 };

struct curve {
	int64_t first, last; /* steps */
	double low, high;
	double mean[COLUMNS_MAX]; /* NAN: no step falls into the column */
	int columns;
};

static int column_of(const struct curve *c, int64_t step)
{
	int64_t span = c->last - c->first;
	return span == 0 ? 0 : (int)((double)(step - c->first) / (double)span * (c->columns - 1) + 0.5);
}

static int average_columns(struct curve *c, const struct wlb_point *points, int count)
{
	int weight[COLUMNS_MAX] = {0}, finite = 0;
	double sum[COLUMNS_MAX] = {0};
	for (int i = 0; i < count; i++) {
		if (!isfinite(points[i].value))
			continue;
		int column = column_of(c, points[i].step);
		sum[column] += points[i].value;
		weight[column]++;
		finite++;
	}
	c->low = INFINITY;
	c->high = -INFINITY;
	for (int i = 0; i < c->columns; i++) {
		c->mean[i] = weight[i] > 0 ? sum[i] / weight[i] : NAN;
		c->low = fmin(c->low, c->mean[i]); /* fmin and fmax ignore NAN */
		c->high = fmax(c->high, c->mean[i]);
	}
	return finite;
}

/* One character of a column in a row: the part of the cell that is below the curve. */
static const char *cell(double filled, bool blocks)
{
	static const char *const levels[EIGHTHS + 1] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	int level = (int)ceil(filled * EIGHTHS);
	level = level < 0 ? 0 : level > EIGHTHS ? EIGHTHS : level;
	if (!blocks)
		return level == EIGHTHS ? "#" : level > 0 ? "." : " ";
	return levels[level];
}

static void print_rows(FILE *out, const struct curve *c, int rows, bool blocks)
{
	double span = c->high > c->low ? c->high - c->low : 1;
	for (int row = rows - 1; row >= 0; row--) {
		if (row == rows - 1)
			fprintf(out, "  %8.4g ", c->high);
		else if (row == 0)
			fprintf(out, "  %8.4g ", c->low);
		else
			fprintf(out, "  %8s ", "");
		for (int i = 0; i < c->columns; i++) {
			/* The lowest value is visible too: one eighth. */
			double height = (c->mean[i] - c->low) / span * (rows - 1.0 / EIGHTHS) + 1.0 / EIGHTHS;
			fputs(isnan(c->mean[i]) ? " " : cell(height - row, blocks), out);
		}
		fputc('\n', out);
	}
}

static void print_axis(FILE *out, const struct curve *c, const int64_t *marks, int mark_count)
{
	char line[COLUMNS_MAX + 1];
	memset(line, ' ', sizeof(line));
	line[c->columns] = '\0';
	for (int i = 0; i < mark_count; i++)
		if (marks[i] >= c->first && marks[i] <= c->last)
			line[column_of(c, marks[i])] = '^';
	if (strchr(line, '^') != NULL)
		fprintf(out, "  %8s %s\n", "fault", line);
	char last[24];
	int width = c->columns - snprintf(last, sizeof(last), "%" PRId64, c->last);
	fprintf(out, "  %8s %-*" PRId64 "%s\n", "step", width > 0 ? width : 0, c->first, last);
}

void wlb_plot(FILE *out, const struct wlb_point *points, int count, const int64_t *marks, int mark_count, int columns,
              int rows, bool blocks)
{
	if (count < 2)
		return;
	struct curve c = {.first = points[0].step, .last = points[count - 1].step};
	c.columns = columns < 2 ? 2 : columns > COLUMNS_MAX ? COLUMNS_MAX : columns;
	if (average_columns(&c, points, count) < 2)
		return;
	print_rows(out, &c, rows, blocks);
	print_axis(out, &c, marks, mark_count);
}
