/* Shares the plan that rank 0 makes with all ranks, however slow the files are that rank 0 reads for it. */
#ifndef WORKER_LAUNCH_PLAN_AGREE_H
#define WORKER_LAUNCH_PLAN_AGREE_H

#include "worker/launch/attempt_setup.h"

/* Collective: rank 0 makes the plan, every rank receives it, made, refused or failed. `device_error`: the error with
 * which rank 0 opened no device, or NULL; the plan then has the state `without_device`, refused or failed, and this
 * reason. Meanwhile the ranks meet repeatedly, so that a
 * slow file of rank 0 exceeds no limit of PMIx. The plan has failed where a file made no progress for
 * --storage-timeout-minutes: the reason names the file, and a thread of rank 0, which then uses launch and options, may
 * still be in a call on it, so that the process should end. Returns -1 when the plan could not be shared. */
int wlb_train_plan_agree(struct wlb_launch *launch, const struct wlb_train_options *options,
                         enum wlb_plan_state without_device, const char *device_error, struct wlb_train_plan *plan,
                         struct wlb_error *error);

#endif
