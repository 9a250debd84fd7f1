/* Plans an attempt: reads the model and the data of the command, and searches the layout for the attempt's nodes. */
#ifndef COORDINATOR_WLB_RUN_PLAN_PLAN_H
#define COORDINATOR_WLB_RUN_PLAN_PLAN_H

#include "coordinator/wlb/run/state/state.h"
#include "libwlb/wlb.h"

/* Searches the layout where the policy is auto and the model is known: from the options of a `wlb-worker train`
 * command, else from --wlb-model, --wlb-seq-length and the words --seq-length, --global-batch-size and --data-path of
 * another command, as Megatron-LM has them; where an index of that cannot be read, one line says so. Replaces the
 * attempt's layout, and its nodes and tasks where ranks stay idle, and sets attempt->settings and attempt->plan. A
 * layout that the user named is kept, and only its prediction is recorded. Without a model the layout stays data
 * parallel, and one line says what to add. Returns -1 where no step should start: the message has the remedy. */
int wlb_run_plan(struct wlb_run *run, struct wlb_attempt *attempt, struct wlb_error *error);

#endif
