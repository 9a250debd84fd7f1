/* The time that a run lost, for wlb show. */
#ifndef COORDINATOR_WLB_HISTORY_TIME_LOST_H
#define COORDINATOR_WLB_HISTORY_TIME_LOST_H

#include <stdio.h>

#include <jansson.h>

/*
 * Prints the effective training time ratio of a run, which is the time that advanced training by the time in which the
 * job had its nodes allocated (ETTR: Kokolis et al., 2024, "Revisiting Reliability in Large-Scale Machine Learning
 * Research Clusters", arXiv 2410.21680), and a line for each cause by which 0.1 s or more were lost. `run` is the reply
 * of GET /v1/runs/RUN. Prints nothing where nothing was held yet, or where the reply does not have it. Returns -1 if
 * out of memory.
 */
int wlb_show_time_lost(const json_t *run, FILE *out);

#endif
