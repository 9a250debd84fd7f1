#include "common/output/plot_series.h"

#include <math.h>
#include <string.h>

enum { COLUMNS_MIN = 10, COLUMNS_MAX = 200, ROWS_MAX = 40, BEGIN_PARTS = 10, SEVERAL = -2, NONE = -1 };

struct chart {
	double first, last, low, high;
	double begin_high; /* of the first tenth of the columns */
	int columns, rows;
	double means[WLB_SERIES_MAX][COLUMNS_MAX]; /* NAN: no value falls into the column */
	int cells[ROWS_MAX][COLUMNS_MAX];          /* number of the series, SEVERAL or NONE */
};

const char *wlb_series_colour(int number)
{
	static const char *const colours[WLB_SERIES_MAX] = {"34", "31", "32", "35", "36", "33", "94", "91"};
	return colours[number % WLB_SERIES_MAX];
}

bool wlb_series_ends(const struct wlb_series *series, int count, double *first, double *last)
{
	*first = INFINITY;
	*last = -INFINITY;
	for (int s = 0; s < count; s++) {
		for (int i = 0; i < series[s].count; i++) {
			if (!isfinite(series[s].points[i].x) || !isfinite(series[s].points[i].y))
				continue;
			*first = fmin(*first, series[s].points[i].x);
			*last = fmax(*last, series[s].points[i].x);
		}
	}
	return *first <= *last;
}

static void average(struct chart *c, const struct wlb_series *series, double means[COLUMNS_MAX])
{
	int weights[COLUMNS_MAX] = {0};
	double sums[COLUMNS_MAX] = {0}, span = c->last - c->first;
	for (int i = 0; i < series->count; i++) {
		const struct wlb_sample *point = &series->points[i];
		if (!isfinite(point->x) || !isfinite(point->y))
			continue;
		int column = span > 0 ? (int)lround((point->x - c->first) / span * (c->columns - 1)) : 0;
		sums[column] += point->y;
		weights[column]++;
	}
	for (int i = 0; i < c->columns; i++) {
		means[i] = weights[i] > 0 ? sums[i] / weights[i] : NAN;
		c->low = fmin(c->low, means[i]); /* fmin and fmax ignore NAN */
		double *high = i >= c->columns / BEGIN_PARTS ? &c->high : &c->begin_high;
		*high = fmax(*high, means[i]);
	}
}

static void fill_cells(struct chart *c, int count)
{
	double span = c->high > c->low ? c->high - c->low : 1;
	for (int row = 0; row < c->rows; row++)
		for (int i = 0; i < c->columns; i++)
			c->cells[row][i] = NONE;
	for (int s = 0; s < count; s++) {
		for (int i = 0; i < c->columns; i++) {
			if (isnan(c->means[s][i]))
				continue;
			double height = fmin((c->means[s][i] - c->low) / span, 1);
			int *cell = &c->cells[lround(height * (c->rows - 1))][i];
			*cell = *cell == NONE ? s : SEVERAL;
		}
	}
}

static void print_rows(FILE *out, const struct chart *c, const struct wlb_series *series, bool has_colours)
{
	for (int row = c->rows - 1; row >= 0; row--) {
		if (row == c->rows - 1 || row == 0)
			fprintf(out, "  %8.4g ", row == 0 ? c->low : c->high);
		else
			fprintf(out, "  %8s ", "");
		int end = c->columns;
		while (end > 0 && c->cells[row][end - 1] == NONE)
			end--;
		for (int i = 0; i < end; i++) {
			int s = c->cells[row][i];
			if (s < 0)
				fputc(s == SEVERAL ? '*' : ' ', out);
			else if (has_colours)
				fprintf(out, "\033[%sm%c\033[0m", wlb_series_colour(s), series[s].mark);
			else
				fputc(series[s].mark, out);
		}
		fputc('\n', out);
	}
}

void wlb_plot_series(FILE *out, const struct wlb_series *series, int count, const struct wlb_axis *axis, int columns,
                     int rows, bool has_colours)
{
	struct chart c = {.low = INFINITY, .high = -INFINITY, .begin_high = -INFINITY};
	if (count > WLB_SERIES_MAX || !wlb_series_ends(series, count, &c.first, &c.last))
		return;
	c.columns = columns < COLUMNS_MIN ? COLUMNS_MIN : columns > COLUMNS_MAX ? COLUMNS_MAX : columns;
	c.rows = rows < 2 ? 2 : rows > ROWS_MAX ? ROWS_MAX : rows;
	for (int s = 0; s < count; s++)
		average(&c, &series[s], c.means[s]);
	if (!isfinite(c.high))
		c.high = c.begin_high;
	fill_cells(&c, count);
	print_rows(out, &c, series, has_colours);
	int width = c.columns - (int)strlen(axis->last);
	fprintf(out, "  %8s %-*s%s\n", axis->name, width > 0 ? width : 0, axis->first, axis->last);
}
