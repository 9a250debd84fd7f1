/* Draws the simulated pipelines as SVG. */
#ifndef COORDINATOR_WLB_CALCULATORS_SIM_DRAW_H
#define COORDINATOR_WLB_CALCULATORS_SIM_DRAW_H

#include "coordinator/wlb/calculators/sim/run.h"
#include "libwlb/wlb.h"

/* Writes a picture with the pipelines of all strategies below each other, on one scale of time. */
int wlb_sim_draw(const char *path, const struct wlb_sim_report *report, struct wlb_error *error);

#endif
