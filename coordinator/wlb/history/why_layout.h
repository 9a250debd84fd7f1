/* Prints the section "Why this layout" of `wlb show`. */
#ifndef COORDINATOR_WLB_HISTORY_WHY_LAYOUT_H
#define COORDINATOR_WLB_HISTORY_WHY_LAYOUT_H

#include <jansson.h>

/* Prints, for the newest attempts of a run that have a plan, the plan, the others that were considered, and the
 * prediction beside the measurement. Prints nothing for a run without one. Returns -1 if out of memory. */
int wlb_show_why_layout(const json_t *run);

#endif
