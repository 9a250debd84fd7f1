/* Reads the command of another trainer than wlb-worker: with the names that the options have in the trainer of
 * `wlb run --for`, else in Megatron-LM. */
#ifndef COORDINATOR_WLB_RUN_PLAN_FOREIGN_COMMAND_H
#define COORDINATOR_WLB_RUN_PLAN_FOREIGN_COMMAND_H

#include "coordinator/wlb/run/state/state.h"
#include "planner/automatic.h"

/* Fills the request from the command and from --wlb-model and --wlb-seq-length; the layout's own options are held. The
 * blend, which starts zeroed, has the datasets, and the request points to it where there are any; the caller frees it
 * in any case. Returns 1 where model, length or batch is not known: *missing is the option to add. */
int wlb_run_read_foreign(const struct wlb_run *run, const char *gpu_types, struct wlb_blend *blend,
                         struct wlb_auto_request *request, const char **missing, struct wlb_error *error);

#endif
