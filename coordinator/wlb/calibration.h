/* The machine that the coordinator keeps for nodes of this node's type. */
#ifndef COORDINATOR_WLB_CALIBRATION_H
#define COORDINATOR_WLB_CALIBRATION_H

#include <jansson.h>

#include "coordinator/client/client.h"

/* Asks for the machine of nodes like this one: with `gpus`, of the job's GPUs, of the type `gpu_type` in Slurm's GRES,
 * or of that which the job's environment names where it is NULL; else of its processor, with that many ranks on a node
 * (0: any). Returns the reply of GET /v1/calibrations (docs/api.md), which the caller releases; NULL
 * with the reason. */
json_t *wlb_calibration_ask(struct wlb_connection *connection, int gpus, const char *gpu_type, int ranks_per_node,
                            int timeout_ms, struct wlb_error *error);

/* Whose calibration the reply holds, such as "your own calibration"; NULL where it holds none. */
const char *wlb_calibration_source(const json_t *reply);

#endif
