/* Draws the open verdicts of a run: a line of what is wrong, and one of the evidence. */
#ifndef COORDINATOR_WLB_TOP_VERDICTS_PAGE_H
#define COORDINATOR_WLB_TOP_VERDICTS_PAGE_H

#include "coordinator/wlb/top/frame.h"
#include "coordinator/wlb/top/verdicts.h"

/* Returns how many lines they take. */
int wlb_top_verdicts_lines(const struct wlb_top_verdicts *verdicts);

/* Draws the first few; `run` is the name that `wlb faults` takes to list the others. */
void wlb_top_verdicts_put(struct wlb_top_frame *frame, const struct wlb_top_verdicts *verdicts, const char *run);

#endif
