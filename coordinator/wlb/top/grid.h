/* The ranks as cells of a letter and a mark, by section; of many ranks, a cell for each section with its worst rank. */
#ifndef COORDINATOR_WLB_TOP_GRID_H
#define COORDINATOR_WLB_TOP_GRID_H

#include "coordinator/wlb/top/frame.h"
#include "coordinator/wlb/top/ranks.h"
#include "coordinator/wlb/top/sections.h"

enum { WLB_TOP_CELLS_MAX = 2048 }; /* of ranks: where there are more, a cell is a section */

/* The style of a cell, or of text, about a rank. */
enum wlb_top_style wlb_top_style_of(const struct wlb_top_ranks *ranks, const struct wlb_top_rank *rank);

/* Draws at most `lines_max` lines, 2 at least. */
void wlb_top_grid_draw(struct wlb_top_frame *frame, const struct wlb_top_ranks *ranks,
                       const struct wlb_top_sections *sections, int lines_max);

#endif
