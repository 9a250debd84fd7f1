#include "libverdict/bounds.h"

#include <math.h>

static double greater(double a, double b)
{
	return a > b ? a : b;
}

void verdict_bounds_init(struct wlb_verdict_detector *detector)
{
	double known_s = detector->options.known_step_s;
	detector->longest_s[WLB_VERDICT_COMPUTING] = known_s;
	detector->longest_s[WLB_VERDICT_LOADING] = known_s;
	detector->longest_s[WLB_VERDICT_CALLING] = known_s;
	detector->longest_transfer_s = known_s;
}

double verdict_work_times(const struct verdict_rank *rank)
{
	if (!(rank->work > 0.0) || !(rank->usual_work > 0.0))
		return 1.0;
	return greater(1.0, rank->work / rank->usual_work);
}

int verdict_in_warm_up(const struct wlb_verdict_detector *detector, const struct verdict_rank *rank)
{
	if (rank->activity == WLB_VERDICT_STARTING || rank->first_step < 0)
		return 1;
	return detector->options.known_step_s <= 0.0 && rank->step < rank->first_step + detector->options.warm_up_steps;
}

int verdict_has_stood_still(const struct wlb_verdict_detector *detector, double since_job_s)
{
	return detector->standstill || since_job_s < detector->standstill_job_s;
}

/* Reports of every second may come a little later. */
static const double usual_gap_s = 2.5;

/* What ranks waited during a hang is not healthy, and the first steps compile. The last step of the warm-up teaches the
 * bounds of the step after it. */
static int teaches(const struct wlb_verdict_detector *detector, const struct verdict_rank *rank, double since_job_s)
{
	int64_t first = rank->first_step + detector->options.warm_up_steps - 1;
	return !verdict_has_stood_still(detector, since_job_s) && rank->activity != WLB_VERDICT_STARTING &&
	       rank->first_step >= 0 && rank->step >= first;
}

void verdict_bounds_learn(struct wlb_verdict_detector *detector, const struct verdict_rank *rank, double seconds)
{
	if (!teaches(detector, rank, rank->progress_job_s))
		return;
	if (rank->activity == WLB_VERDICT_COMPUTING)
		seconds /= verdict_work_times(rank);
	detector->longest_s[rank->activity] = greater(detector->longest_s[rank->activity], seconds);
}

void verdict_bounds_learn_call(struct wlb_verdict_detector *detector, double ended_job_s, double waited_s,
                               double call_s)
{
	struct verdict_long_call *once = &detector->long_call;
	if (call_s <= detector->longest_transfer_s)
		return;
	if (call_s <= verdict_bound_transfer_s(detector, detector->options.suspect_s)) {
		detector->longest_transfer_s = call_s;
		return;
	}
	if (once->seconds > 0.0 && ended_job_s - waited_s >= once->ended_job_s) {
		detector->longest_transfer_s = greater(detector->longest_transfer_s, fmin(call_s, once->seconds));
		once->seconds = 0.0;
	}
	once->seconds = greater(once->seconds, call_s);
	once->ended_job_s = greater(once->ended_job_s, ended_job_s);
}

void verdict_bounds_learn_transfer(struct wlb_verdict_detector *detector, int32_t g, double since_job_s, double seconds)
{
	const struct verdict_group *group = &detector->world.group[g];
	int first_steps = 0;
	double gap_s = 0.0;
	for (int32_t m = group->first; m < group->first + group->count; m++) {
		const struct verdict_rank *rank = &detector->rank[detector->world.membership[m].rank];
		if (rank->process == WLB_VERDICT_GONE || rank->process == WLB_VERDICT_STOPPED ||
		    rank->stopped_job_s > since_job_s || !teaches(detector, rank, since_job_s))
			return;
		if (rank->gap_s > usual_gap_s && rank->gap_to_job_s > since_job_s)
			gap_s = greater(gap_s, rank->gap_s);
		first_steps |= verdict_in_warm_up(detector, rank);
	}
	if (first_steps)
		detector->longest_transfer_s = greater(detector->longest_transfer_s, seconds - gap_s);
	else
		verdict_bounds_learn_call(detector, since_job_s + seconds, seconds, seconds - gap_s);
}

double verdict_bound_s(const struct wlb_verdict_detector *detector, const struct verdict_rank *rank, double least_s)
{
	double bound_s = greater(least_s, detector->options.times_longest * detector->longest_s[rank->activity]);
	if (rank->activity == WLB_VERDICT_COMPUTING)
		bound_s *= verdict_work_times(rank);
	if (verdict_in_warm_up(detector, rank) || rank->activity == WLB_VERDICT_CHECKPOINT ||
	    rank->activity == WLB_VERDICT_EVALUATION)
		bound_s = greater(bound_s, detector->options.patience_s);
	return bound_s;
}

double verdict_bound_transfer_s(const struct wlb_verdict_detector *detector, double least_s)
{
	return greater(least_s, detector->options.times_longest * detector->longest_transfer_s);
}
