/* The layout that the options of a command tell its trainer (`wlb run --for`, trainer.h): what the search must keep. */
#ifndef COORDINATOR_WLB_RUN_PLAN_TOLD_LAYOUT_H
#define COORDINATOR_WLB_RUN_PLAN_TOLD_LAYOUT_H

#include <stdbool.h>

#include "coordinator/wlb/run/state/state.h"
#include "planner/automatic.h"

/* Whether the ranks of a node are started by a launcher, which has as many on each. */
bool wlb_run_has_launcher(const struct wlb_run *run);

/* Finds the ranks that the command starts on each node of the attempt. Returns -1 with value, rule and remedy where it
 * does not say so. */
int wlb_run_ranks_of_node(const struct wlb_run *run, const struct wlb_attempt *attempt, int *ranks,
                          struct wlb_error *error);

/* Searches a plan with a rank in every process of a launcher: on fewer of the nodes, half of them at least, where no
 * plan has all. request->nodes.count is then theirs; where there is none, it is unchanged. */
int wlb_run_find_on_nodes(const struct wlb_attempt *attempt, struct wlb_auto_request *request, struct wlb_auto *found,
                          struct wlb_error *error);

/* Holds tp, cp, pp and interleave as the attempts before had them, unless the trainer reads its checkpoint in others
 * too. Those of an earlier start of the job are in the journal. */
void wlb_run_hold_layout(struct wlb_run *run, struct wlb_search_fixed *fixed);
/* Says of a first attempt that its layout has to be kept and needs all of these nodes. */
void wlb_run_warn_of_loss(const struct wlb_run *run, const struct wlb_attempt *attempt, const struct wlb_nodes *nodes,
                          const struct wlb_layout *layout);
/* Adds to the message of a search that found nothing why it was held so, and what can be done. */
int wlb_run_fail_held(const struct wlb_run *run, struct wlb_error *error);
/* Keeps the layout that the attempt is going to be told. */
void wlb_run_keep_layout(struct wlb_run *run, const struct wlb_attempt *attempt);

#endif
