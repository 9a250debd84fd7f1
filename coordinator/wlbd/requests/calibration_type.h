/* The type of the GPUs that a calibration was made of, as Slurm has it; no I/O. */
#ifndef COORDINATOR_WLBD_REQUESTS_CALIBRATION_TYPE_H
#define COORDINATOR_WLBD_REQUESTS_CALIBRATION_TYPE_H

#include "coordinator/wlbd/requests/calibration_read.h"
#include "coordinator/wlbd/slurm/nodes.h"

/* Sets a node_type of "gpu" to "gpu:h100" where Slurm's GRES has a type for the nodes. Returns -1 with the nodes and
 * the rule where they have several types, or another than node_type names. Nodes without a type are not checked. */
int wlbd_calibration_set_type(struct wlbd_calibration *calibration, const struct wlbd_nodes *nodes,
                              struct wlb_error *error);

#endif
