/* What slow ranks cost: by how much the last steps would have been shorter if each had computed as long as its peers,
 * by the model of a step. Internal. */
#ifndef LIBVERDICT_COST_H
#define LIBVERDICT_COST_H

#include "libverdict/detector_state.h"

/* Returns -1 if out of memory; verdict_cost_free frees it in either case. */
int verdict_cost_init(struct verdict_cost *cost, const struct verdict_step_model *model);
void verdict_cost_free(struct verdict_cost *cost);

/* Keeps what the ranks computed in a step. */
void verdict_cost_step(struct wlb_verdict_detector *detector, const struct verdict_slot *slot);

/* Returns by how many percent the steps since the first of the slow ranks became slow are longer, of the last
 * VERDICT_COST_STEPS steps; -1 where that is not known. */
double verdict_cost_percent(struct wlb_verdict_detector *detector);

#endif
