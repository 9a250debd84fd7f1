/* A curve in the terminal. */
#ifndef COMMON_OUTPUT_PLOT_H
#define COMMON_OUTPUT_PLOT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct wlb_point {
	int64_t step;
	double value;
};

/* Draws points (ordered by step) as a curve of `columns` by `rows` characters, each column the mean of its steps;
 * values that are not finite are left out. Columns in which one of `marks` falls carry a '^' below the axis. `blocks`:
 * the terminal shows Unicode's eighths of a block. Draws nothing when fewer than two points are finite. */
void wlb_plot(FILE *out, const struct wlb_point *points, int count, const int64_t *marks, int mark_count, int columns,
              int rows, bool blocks);

#endif
