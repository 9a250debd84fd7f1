/* Bars in the terminal. */
#ifndef PLANNER_CLI_CHART_H
#define PLANNER_CLI_CHART_H

#include <stdbool.h>
#include <stdio.h>

struct wlb_bar {
	char label[64]; /* before the bar */
	char note[64];  /* behind it */
	double value;   /* >= 0 */
};

/* Draws a bar for each, the longest as wide as `columns` allow. `blocks`: the terminal shows Unicode's eighths of a
 * block. */
void wlb_bars(FILE *out, const struct wlb_bar *bars, int count, int columns, bool blocks);

#endif
