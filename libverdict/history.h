/* How long steps took over what the computation of their ranks explains, and what a fault that is not of computation
 * costs: the steps since the fault began are compared with the steps before it, or with what the same steps would have
 * been with the waits of the other ranks alone. Internal. */
#ifndef LIBVERDICT_HISTORY_H
#define LIBVERDICT_HISTORY_H

#include "libverdict/detector_state.h"

void verdict_history_add(struct wlb_verdict_detector *detector, const struct verdict_slot *slot);

/* Returns by how many percent steps are longer since `since_step` than healthy ones before, beyond what computation
 * explains; -1 where too few steps are known of either. */
double verdict_history_cost_percent(const struct wlb_verdict_detector *detector, int64_t since_step);

/* Returns by how many percent steps since `since_step` are longer than they would have been if no rank with a slow
 * loader had waited for its loader, and the other ranks as long as they did. A step is longer by the longest wait in
 * it. -1 where that is not known: too few steps, or more ranks with slow loaders than waits are remembered of. */
double verdict_history_loader_percent(const struct wlb_verdict_detector *detector, int64_t since_step);

/* Returns when the step before `step` ended by the caller's clock, as far as reports show. */
double verdict_history_began_s(const struct wlb_verdict_detector *detector, int64_t step);

#endif
