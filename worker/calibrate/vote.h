/* Computes one value from those of all ranks: the median, without ranks that are far from it. Pure functions. */
#ifndef WORKER_CALIBRATE_VOTE_H
#define WORKER_CALIBRATE_VOTE_H

#include "libwlb/wlb.h"

/* What the ranks measured: values[rank * count + i], 0 where a rank did not measure value i. */
struct wlb_votes {
	const char *what; /* for messages: "matrix products" */
	const double *values;
	int ranks;
	int count;
	int judged; /* a rank is judged by the first `judged` of its values */
};

/* factor[rank] = the median, over the rank's judged values, of the value divided by the median of that value over all
 * ranks; 0 where the rank has none. Returns how many ranks have a factor above `deviation` or below 1 / deviation;
 * these are outvoted. Returns -1 where that is half or more of several ranks, because the median is then not known to
 * be right, and -1 if out of memory. */
int wlb_vote(const struct wlb_votes *votes, double deviation, double *factor, struct wlb_error *error);

/* Returns 1 where the rank has values and wlb_vote does not outvote it. */
int wlb_vote_counts(double factor, double deviation);

/* medians[count] = the median of each value over the ranks that count; 0 where none has one. Returns -1 if out of
 * memory. */
int wlb_vote_medians(const struct wlb_votes *votes, double deviation, const double *factor, double *medians,
                     struct wlb_error *error);

/* least[count] = the least of each value over all ranks; 0 where none has one. */
void wlb_vote_least(const struct wlb_votes *votes, double *least);

#endif
