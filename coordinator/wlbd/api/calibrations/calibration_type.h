/* The type of the GPUs that a calibration was made of, as Slurm has it; no I/O. */
#ifndef COORDINATOR_WLBD_API_CALIBRATIONS_CALIBRATION_TYPE_H
#define COORDINATOR_WLBD_API_CALIBRATIONS_CALIBRATION_TYPE_H

#include "coordinator/wlbd/api/calibrations/calibration_read.h"
#include "coordinator/wlbd/slurm/nodes.h"

/* Sets a node_type of "gpu" to "gpu:h100", the type that the nodes have in Slurm's GRES. Returns -1 with the node and
 * the rule where one has no type, they have several, or another than node_type names. */
int wlbd_calibration_set_type(struct wlbd_calibration *calibration, const struct wlbd_nodes *nodes,
                              struct wlb_error *error);

#endif
