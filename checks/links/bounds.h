/* How long the parts of `wlb check-links` may take. */
#ifndef CHECKS_LINKS_BOUNDS_H
#define CHECKS_LINKS_BOUNDS_H

enum {
	WLB_CHECK_LINKS_SET_UP_S = 20,     /* for the start of MPI on all nodes */
	WLB_CHECK_LINKS_TIMES_S = 8,       /* within which another pass over the pairs begins */
	WLB_CHECK_LINKS_TIMES_MOST_S = 12, /* after which a pair that has not ended is left out */
};

/* All together, with --times and otherwise the default options. */
enum { WLB_CHECK_LINKS_MOST_S = WLB_CHECK_LINKS_SET_UP_S + 3 + WLB_CHECK_LINKS_TIMES_MOST_S };

#endif
