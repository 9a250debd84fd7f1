/* What `wlb show` prints of the attempts of a run that hung: which ranks were in which function, and the last calls. */
#ifndef COORDINATOR_WLB_HISTORY_STANDSTILLS_H
#define COORDINATOR_WLB_HISTORY_STANDSTILLS_H

#include <jansson.h>
#include <stdio.h>

#include "libwlb/wlb.h"

/* Writes the clusters of a reply to GET /v1/runs/RUN/stacks, a line each, with the suspects marked. Returns -1 where
 * the reply has no stacks that can be read. */
int wlb_standstill_clusters(const json_t *stacks, int columns, FILE *out, struct wlb_error *error);

/* Writes the `calls` of a verdict, a line each. */
void wlb_standstill_calls(const json_t *verdict, FILE *out);

/* Prints a section for each attempt of the run of which stacks or calls are kept, with the request for the stacks. */
void wlb_show_standstills(const json_t *run);

#endif
