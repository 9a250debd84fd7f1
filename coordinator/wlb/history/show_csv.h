/* The lists of a run as CSV. */
#ifndef COORDINATOR_WLB_HISTORY_SHOW_CSV_H
#define COORDINATOR_WLB_HISTORY_SHOW_CSV_H

#include <jansson.h>

/* Their names, as choices of an option. */
#define WLB_SHOW_LISTS "attempts|faults|verdicts|checkpoints|evaluations|events|values|time_lost"

/* Prints the list of that name, of the reply to GET /v1/runs/RUN, to standard output, which makes its texts printable.
 * Returns -1 if out of memory. */
int wlb_show_csv(json_t *run, const char *list);

#endif
