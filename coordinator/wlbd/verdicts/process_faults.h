/*
 * Ranks of any trainer whose processes are stopped or dead while others run, and launchers without a rank, from the
 * reports of agents (detection/processes.h). Where ranks report what they do, libverdict judges that with more
 * knowledge, and this does nothing.
 */
#ifndef COORDINATOR_WLBD_VERDICTS_PROCESS_FAULTS_H
#define COORDINATOR_WLBD_VERDICTS_PROCESS_FAULTS_H

#include <stdint.h>

#include "coordinator/wlbd/attempts/attempts.h"
#include "coordinator/wlbd/detection/processes.h"
#include "coordinator/wlbd/detection/rank_processes.h"

/* Call it each second. Returns the verdicts that are open, or over since the last call, and their number. They live
 * until the next call. */
const struct wlbd_found_verdict *wlbd_process_faults_look(struct wlbd_attempt *attempt, int64_t now_ms, int *count);

/* The verdicts of the last call. */
const struct wlbd_found_verdict *wlbd_process_faults_open(const struct wlbd_attempt *attempt, int *count);

/* Fills in whether the ranks of a trainer that reports nothing run. wlbd_rank_processes_free releases it. */
void wlbd_process_faults_ranks(const struct wlbd_attempt *attempt, struct wlbd_rank_processes *ranks);

/* The attempt is over. */
void wlbd_process_faults_forget(struct wlbd_attempt *attempt);

#endif
