/* The values that a trainer said of its steps, for wlb show. */
#ifndef COORDINATOR_WLB_HISTORY_SAID_VALUES_H
#define COORDINATOR_WLB_HISTORY_SAID_VALUES_H

#include <jansson.h>

/* Prints the newest value of each name with its step and its source, and how many steps were counted in attempts whose
 * trainer does not say their numbers. `run` is the reply of GET /v1/runs/RUN. Prints nothing where there is neither.
 * Returns -1 if out of memory. */
int wlb_show_said_values(const json_t *run);

#endif
