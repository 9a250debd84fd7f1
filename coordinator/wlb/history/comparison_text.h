/* A comparison of runs for people. */
#ifndef COORDINATOR_WLB_HISTORY_COMPARISON_TEXT_H
#define COORDINATOR_WLB_HISTORY_COMPARISON_TEXT_H

#include <jansson.h>
#include <stdio.h>

#include "coordinator/wlb/history/comparison.h"

/* Prints the chart of the losses and the tables of `report`, which wlb_comparison_report has made of the comparison and
 * wlb_make_printable has gone through, in lines of at most `columns`. Returns -1 if out of memory. */
int wlb_comparison_print(const struct wlb_comparison *comparison, const json_t *report, int columns, FILE *out);

#endif
