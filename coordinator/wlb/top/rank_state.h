/* What a cell shows of a rank: a letter for what it does, and a mark for how long, or how far behind it is. */
#ifndef COORDINATOR_WLB_TOP_RANK_STATE_H
#define COORDINATOR_WLB_TOP_RANK_STATE_H

#include "coordinator/wlb/top/ranks.h"

enum wlb_top_level {
	WLB_TOP_FINE,
	WLB_TOP_NOTED,
	WLB_TOP_LATE,
	WLB_TOP_LATEST,
};

struct wlb_top_state {
	char letter;
	char mark; /* of the level, so that no colour is needed to see it; of a rank that a verdict names '#' */
	enum wlb_top_level level;
};

struct wlb_top_state wlb_top_state_of(const struct wlb_top_ranks *ranks, const struct wlb_top_rank *rank);

/* Returns for how long the rank has been in its call or, where it waits in none, in its activity. */
double wlb_top_time_s(const struct wlb_top_rank *rank);

/* Whether `a` needs more attention than `b`. The order is: the higher level, then a rank that waits for no other rank,
 * then the longer time in its call or activity. */
bool wlb_top_is_worse(const struct wlb_top_ranks *ranks, const struct wlb_top_rank *a, const struct wlb_top_rank *b);

/* The lines that explain letters and marks, ended by NULL; of at most 80 columns. */
extern const char *const wlb_top_legend[];

/* The same for the mark of ranks that a verdict names. */
extern const char wlb_top_legend_named[];

#endif
