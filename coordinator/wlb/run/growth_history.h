/*
 * What the growths of a run have brought (grow.h), kept in the spool folder: a job that is requeued starts another
 * `wlb run`, which must know it. The file, JOB.growth, holds "SUBMIT_TIME FIRST_NODES FRUITLESS NODES_BEFORE".
 */
#ifndef COORDINATOR_WLB_RUN_GROWTH_HISTORY_H
#define COORDINATOR_WLB_RUN_GROWTH_HISTORY_H

#include "coordinator/wlb/run/state.h"

/* Reads fruitless and nodes_before of run->grow, and first_nodes where it is higher. Leaves them where there is no such
 * file, where it is damaged, or is that of another job of the same id. */
void wlb_run_growth_read(struct wlb_run *run);
/* Replaces the file. Prints a line where that fails. */
void wlb_run_growth_write(const struct wlb_run *run);

#endif
