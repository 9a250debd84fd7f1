/* Several curves in one chart of the terminal. */
#ifndef COMMON_OUTPUT_PLOT_SERIES_H
#define COMMON_OUTPUT_PLOT_SERIES_H

#include <stdbool.h>
#include <stdio.h>

struct wlb_sample {
	double x, y;
};

struct wlb_series {
	struct wlb_sample *points; /* in the order of x */
	int count;
	char mark; /* the character that it is drawn with */
};

enum { WLB_SERIES_MAX = 8 };

/* What stands below the horizontal axis. */
struct wlb_axis {
	const char *name;         /* at most 8 characters */
	const char *first, *last; /* the least x, and the greatest */
};

/* Draws at most WLB_SERIES_MAX series over `columns` by `rows` characters, each column of a series as the mean of its
 * values there; what is not finite is left out. What the first tenth of the axis has above the rest is drawn in the top
 * row: a loss begins so high that the differences behind it could not be seen. A cell in which several series meet has
 * a '*'. has_colours: each series has the colour of wlb_series_colour(). Draws nothing where no column has a value. */
void wlb_plot_series(FILE *out, const struct wlb_series *series, int count, const struct wlb_axis *axis, int columns,
                     int rows, bool has_colours);

/* The least and the greatest x of all series; false: none has a value. */
bool wlb_series_ends(const struct wlb_series *series, int count, double *first, double *last);

/* The parameter of ECMA-48's SGR for the colour of series `number`, counted from 0. */
const char *wlb_series_colour(int number);

#endif
