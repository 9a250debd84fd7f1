/* Ranks that ended after the one that broke their attempt, as one entry of a list of faults. */
#ifndef COORDINATOR_WLB_HISTORY_FOLD_FAULTS_H
#define COORDINATOR_WLB_HISTORY_FOLD_FAULTS_H

#include <jansson.h>

/* Takes the faults of GET /v1/runs/RUN, or of GET /v1/faults, and returns them in their order, which the caller
 * releases: of each attempt whose cause is among them, several lost ranks that are not the cause are one entry, in the
 * place of the first. Returns NULL if out of memory. */
json_t *wlb_faults_fold(const json_t *faults);

#endif
