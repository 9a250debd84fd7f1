/* How late the ranks of a run are, in cells of a picture. No I/O. */
#ifndef COORDINATOR_WLB_REPORT_RANK_CELLS_H
#define COORDINATOR_WLB_REPORT_RANK_CELLS_H

#include <jansson.h>

/* `reply` is that of GET /v1/runs/RUN/ranks. Returns {"ranks_each":1, "nodes":[...], "cells":[[first rank, index into
 * nodes or null, lateness in microseconds or null], ...]}, at most 4,096 cells of equally many ranks, each with the
 * greatest lateness of its ranks. Null, not NULL, where no rank's lateness is known. NULL if out of memory. The caller
 * releases it. */
json_t *wlb_rank_cells(const json_t *reply);

#endif
