/* Draws the simulated pipelines as SVG. */
#ifndef PLANNER_CLI_SIM_DRAW_H
#define PLANNER_CLI_SIM_DRAW_H

#include "libwlb/wlb.h"
#include "planner/cli/sim/run.h"

/* Writes a picture with the pipelines of all strategies below each other, on one scale of time. */
int wlb_sim_draw(const char *path, const struct wlb_sim_report *report, struct wlb_error *error);

#endif
