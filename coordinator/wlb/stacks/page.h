/* What `wlb stacks` prints: lines of at most 80 columns, or as many as the terminal has. */
#ifndef COORDINATOR_WLB_STACKS_PAGE_H
#define COORDINATOR_WLB_STACKS_PAGE_H

#include <stdio.h>

#include "coordinator/stack_clusters/gathered.h"

/* The clusters, the largest first, then the suspects with what they do and their last calls. Both are bounded. */
void wlb_stacks_page_print(const struct wlb_gathered *gathered, int columns, FILE *out);

/* All threads of one rank, with all frames and calls. Returns -1 where there are none of it. */
int wlb_stacks_page_print_rank(const struct wlb_gathered *gathered, int rank, int columns, FILE *out,
                               struct wlb_error *error);

#endif
