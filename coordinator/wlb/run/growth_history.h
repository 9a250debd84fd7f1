/*
 * What the growths of a run have brought (grow.h), kept in the spool folder: a job that is requeued starts another
 * `wlb run`, which must know it. The file JOB.growth holds "SUBMIT_TIME FIRST_NODES", which all runs of the job share.
 * The file RUN.growth-outcome holds "SUBMIT_TIME GROWTHS_WITHOUT_NODES NODES_BEFORE": the run that stopped to grow may
 * complete instead, and the next run of the script has not grown then.
 */
#ifndef COORDINATOR_WLB_RUN_GROWTH_HISTORY_H
#define COORDINATOR_WLB_RUN_GROWTH_HISTORY_H

#include "coordinator/wlb/run/state.h"

/* Reads growths_without_nodes and nodes_before of run->grow, and first_nodes where it is higher. Leaves what is in a
 * file that does not exist, is damaged, or is that of another job of the same id. */
void wlb_run_growth_read(struct wlb_run *run);
/* Replaces the files. Prints a line where that fails. */
void wlb_run_growth_write(const struct wlb_run *run);

#endif
