/* What the command line of `wlb-worker train` asks of the planner: for rank 0, and for `wlb run`, which reads it first.
 */
#ifndef WORKER_LAUNCH_AUTO_REQUEST_H
#define WORKER_LAUNCH_AUTO_REQUEST_H

#include "planner/automatic.h"
#include "worker/launch/options.h"

/* Fills in what the options say; the caller adds nodes, topology, a layout that is fixed, and the types of the GPUs,
 * which are used where --device is cuda. What the options name is held fixed. The request points into the options. */
void wlb_train_auto_request(const struct wlb_train_options *options, const char *gpu_types,
                            struct wlb_auto_request *request);

#endif
