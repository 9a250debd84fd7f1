/*
 * Aligns the clocks of ranks by samples of collectives: members leave one at nearly the same time. Each sample moves
 * the offset of each member towards the median of its group, so that groups that overlap agree after some samples, and
 * clocks that drift are followed. A clock that was set is followed at once. From aligned clocks: how late each member
 * enters.
 */
#include <math.h>
#include <stddef.h>

#include "libverdict/detector_state.h"
#include "libverdict/error.h"
#include "libverdict/quantile.h"

static const double offset_gain = 0.2, late_gain = 0.1;
/* A clock that differs by more from what it was in the last sample was set, or the sample is wrong: then the next one
 * differs as much. No clock drifts so far between two samples. */
static const double set_s = 1.0;

static int check_sample(const struct wlb_verdict_detector *detector, const struct wlb_verdict_sample *sample,
                        struct wlb_verdict_error *error)
{
	const struct verdict_world *world = &detector->world;
	if (sample->group < 0 || sample->group >= world->groups)
		return verdict_fail(error, "sample of group %d: there are %d groups", sample->group, world->groups);
	if (sample->count != world->group[sample->group].count || sample->entered_s == NULL || sample->left_s == NULL)
		return verdict_fail(error, "sample of group %d with %d members: it has %d", sample->group,
		                    sample->count, world->group[sample->group].count);
	return 0;
}

static struct verdict_clock *clock_of(struct wlb_verdict_detector *detector, int32_t group, int32_t member)
{
	int32_t m = detector->world.group[group].first + member;
	return &detector->clock[detector->world.membership[m].rank];
}

/* Returns the median of times[] by aligned clocks, of the members whose clock is known; NaN where there are none. */
static double aligned_median(struct wlb_verdict_detector *detector, const struct wlb_verdict_sample *sample,
                             const double *times)
{
	int32_t found = 0;
	for (int32_t i = 0; i < sample->count; i++) {
		double ahead_s = clock_of(detector, sample->group, i)->ahead_s;
		if (isfinite(times[i]) && isfinite(ahead_s))
			detector->scratch[found++] = times[i] - ahead_s;
	}
	return found > 0 ? verdict_quantile(detector->scratch, found, 0.5) : NAN;
}

/* The time at which clocks are to agree where none of them is known yet: the mean of all. */
static double mean_of(const double *times, int32_t count)
{
	double sum = 0.0;
	int32_t found = 0;
	for (int32_t i = 0; i < count; i++)
		if (isfinite(times[i])) {
			sum += times[i];
			found++;
		}
	return found > 0 ? sum / found : NAN;
}

/* Moves the offset of a clock towards what a sample shows. Returns 1 where the clock was set. */
static int follow(struct verdict_clock *clock, double ahead_s)
{
	double change_s = ahead_s - clock->ahead_s;
	int known = isfinite(clock->ahead_s), set = known && fabs(change_s) > set_s;
	clock->ahead_s = known && !set ? clock->ahead_s + offset_gain * change_s : ahead_s;
	return set;
}

static void learn_late(struct verdict_clock *clock, double late_s)
{
	if (isfinite(late_s))
		clock->late_s = isnan(clock->late_s) ? late_s : clock->late_s + late_gain * (late_s - clock->late_s);
}

int wlb_verdict_take_sample(struct wlb_verdict_detector *detector, const struct wlb_verdict_sample *sample,
                            struct wlb_verdict_error *error)
{
	if (check_sample(detector, sample, error) < 0)
		return -1;
	/* A send and its receive end at different times, so that one alone tells no offset. */
	if (detector->world.group[sample->group].kind == WLB_VERDICT_PP)
		return 0;
	double left_s = aligned_median(detector, sample, sample->left_s);
	if (isnan(left_s))
		left_s = mean_of(sample->left_s, sample->count);
	int set = 0;
	for (int32_t i = 0; i < sample->count; i++)
		if (isfinite(sample->left_s[i]) && isfinite(left_s))
			set |= follow(clock_of(detector, sample->group, i), sample->left_s[i] - left_s);
	/* A clock that was set during the call does not tell who came late. */
	if (set)
		return 0;
	double entered_s = aligned_median(detector, sample, sample->entered_s);
	for (int32_t i = 0; i < sample->count; i++) {
		struct verdict_clock *clock = clock_of(detector, sample->group, i);
		learn_late(clock, sample->entered_s[i] - clock->ahead_s - entered_s);
	}
	return 0;
}

double wlb_verdict_clock_ahead_s(const struct wlb_verdict_detector *detector, int32_t rank)
{
	return rank >= 0 && rank < detector->world.ranks ? detector->clock[rank].ahead_s : NAN;
}

double wlb_verdict_lateness_s(const struct wlb_verdict_detector *detector, int32_t rank)
{
	return rank >= 0 && rank < detector->world.ranks ? detector->clock[rank].late_s : NAN;
}
