#include "worker/calibrate/vote.h"

#include <stdlib.h>

#include "worker/calibrate/stopwatch.h"

int wlb_vote_counts(double factor, double deviation)
{
	return factor > 0.0 && factor <= deviation && factor * deviation >= 1.0;
}

/* Returns the median of value i over the ranks that count (all where `factor` is NULL); 0 where there is none. `space`:
 * [ranks] */
static double median_of(const struct wlb_votes *votes, int i, double deviation, const double *factor, double *space)
{
	int count = 0;
	for (int rank = 0; rank < votes->ranks; rank++) {
		double value = votes->values[rank * votes->count + i];
		if (value > 0.0 && (factor == NULL || wlb_vote_counts(factor[rank], deviation)))
			space[count++] = value;
	}
	return count > 0 ? wlb_median(space, count) : 0.0;
}

static double factor_of(const struct wlb_votes *votes, int rank, const double *medians, double *space)
{
	int count = 0;
	for (int i = 0; i < votes->judged; i++) {
		double value = votes->values[rank * votes->count + i];
		if (value > 0.0)
			space[count++] = value / medians[i];
	}
	return count > 0 ? wlb_median(space, count) : 0.0;
}

/* Allocates memory for the medians and for a median in progress. */
static double *allocate(const struct wlb_votes *votes, struct wlb_error *error)
{
	double *space = calloc(2 * (size_t)votes->count + (size_t)votes->ranks, sizeof(*space));
	if (space == NULL)
		wlb_fail(error, "out of memory for %d values of %d ranks", votes->count, votes->ranks);
	return space;
}

int wlb_vote(const struct wlb_votes *votes, double deviation, double *factor, struct wlb_error *error)
{
	double *medians = allocate(votes, error), *space = medians + votes->count;
	int voters = 0, outvoted = 0;
	if (medians == NULL)
		return -1;
	for (int i = 0; i < votes->judged; i++)
		medians[i] = median_of(votes, i, deviation, NULL, space);
	for (int rank = 0; rank < votes->ranks; rank++) {
		factor[rank] = factor_of(votes, rank, medians, space);
		voters += factor[rank] > 0.0;
		outvoted += factor[rank] > 0.0 && !wlb_vote_counts(factor[rank], deviation);
	}
	free(medians);
	if (voters > 1 && 2 * outvoted >= voters)
		return wlb_fail(
			error,
			"%s: %d of %d ranks are more than %g times faster or slower than the median of all; more "
			"than half must agree: measure idle nodes of one type, or raise --deviation",
			votes->what, outvoted, voters, deviation);
	return outvoted;
}

int wlb_vote_medians(const struct wlb_votes *votes, double deviation, const double *factor, double *medians,
                     struct wlb_error *error)
{
	double *space = allocate(votes, error);
	if (space == NULL)
		return -1;
	for (int i = 0; i < votes->count; i++)
		medians[i] = median_of(votes, i, deviation, factor, space);
	free(space);
	return 0;
}

void wlb_vote_least(const struct wlb_votes *votes, double *least)
{
	for (int i = 0; i < votes->count; i++) {
		least[i] = 0.0;
		for (int rank = 0; rank < votes->ranks; rank++) {
			double value = votes->values[rank * votes->count + i];
			if (value > 0.0 && (least[i] == 0.0 || value < least[i]))
				least[i] = value;
		}
	}
}
