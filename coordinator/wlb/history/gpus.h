/* The GPUs of a run's attempts, for wlb show. */
#ifndef COORDINATOR_WLB_HISTORY_GPUS_H
#define COORDINATOR_WLB_HISTORY_GPUS_H

#include <jansson.h>

/* Prints, for each attempt on GPUs, their models and drivers and which of them the local ranks have. `run` is the
 * reply of GET /v1/runs/RUN. Prints nothing where no attempt has any. */
void wlb_show_gpus(const json_t *run);

#endif
