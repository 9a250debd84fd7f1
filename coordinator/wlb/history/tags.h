/* Tags of a run and notes on it, in `wlb show`. */
#ifndef COORDINATOR_WLB_HISTORY_TAGS_H
#define COORDINATOR_WLB_HISTORY_TAGS_H

#include <jansson.h>
#include <stdio.h>

/* Prints lines of the summary of the reply to GET /v1/runs/RUN; none for a run without tags and notes. */
void wlb_show_tags(const json_t *run, FILE *out);

#endif
