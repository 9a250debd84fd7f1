/* The machine that the coordinator keeps for nodes of this node's type. */
#ifndef COORDINATOR_WLB_CALIBRATION_H
#define COORDINATOR_WLB_CALIBRATION_H

#include <jansson.h>

#include "coordinator/client/client.h"

enum { WLB_OUTVOTED_NAMES_SIZE = 512 }; /* of what wlb_calibration_outvoted writes */

/* Asks for the machine of nodes like this one: with `gpus`, of the job's GPUs, of the type `gpu_type` in Slurm's GRES
 * (NULL: the type that the job's environment names); else of this node's processor, with `ranks_per_node` ranks on a
 * node (0: any number). Returns the reply of GET /v1/calibrations (docs/api.md), which the caller releases; NULL with
 * the reason. */
json_t *wlb_calibration_ask(struct wlb_connection *connection, int gpus, const char *gpu_type, int ranks_per_node,
                            int timeout_ms, struct wlb_error *error);

/* The same of the type `node_type`. */
json_t *wlb_calibration_of_type(struct wlb_connection *connection, const char *node_type, int ranks_per_node,
                                int timeout_ms, struct wlb_error *error);

/* Returns the names of the types that the attempt's nodes without GPUs have, by what was measured of these nodes, as an
 * array; the caller releases it. NULL where the coordinator does not answer. */
json_t *wlb_calibration_node_types(struct wlb_connection *connection, const char *attempt_id, int timeout_ms);

/* Whose calibration the reply holds, such as "your own calibration"; NULL where it holds none. */
const char *wlb_calibration_source(const json_t *reply);

/* Writes the names of the operations and parts for which the calibration of a reply or of a plan's record has what
 * other users measured, "rope, node_calls", cut off at `size`. Returns their number. */
int wlb_calibration_outvoted(const json_t *calibration, char *names, size_t size);

#endif
