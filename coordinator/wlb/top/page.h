/* The page of `wlb top`: the run, its ranks, the ranks that need attention, and the collectives in progress. */
#ifndef COORDINATOR_WLB_TOP_PAGE_H
#define COORDINATOR_WLB_TOP_PAGE_H

#include "coordinator/wlb/top/fetch.h"
#include "coordinator/wlb/top/frame.h"
#include "coordinator/wlb/top/sections.h"

/* Draws the page. `note` is a line about the coordinator; "": none. Returns -1 if out of memory. */
int wlb_top_page_draw(struct wlb_top_frame *frame, const struct wlb_top_view *view, enum wlb_top_by by,
                      const char *note);

#endif
