/* The line of `wlb show` that says how often a run should save. */
#ifndef COORDINATOR_WLB_HISTORY_SAVE_INTERVAL_H
#define COORDINATOR_WLB_HISTORY_SAVE_INTERVAL_H

#include <stdio.h>

#include <jansson.h>

/* Prints nothing where the coordinator says that too little is known. */
void wlb_show_save_interval(const json_t *run, FILE *out);

#endif
