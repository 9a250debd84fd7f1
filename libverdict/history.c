#include "libverdict/history.h"

#include <math.h>

#include "libverdict/bounds.h"
#include "libverdict/quantile.h"

/* Of the healthy steps before a fault, the newest; fewer than LEAST tell nothing. */
enum { BEFORE_MAX = 96, BEFORE_MIN = 8, SINCE_MIN = 4 };

/* Returns the logarithm of what the computation of the ranks explains of the step's length; 0 where none is known. */
static double explained(struct wlb_verdict_detector *detector, const struct verdict_slot *slot)
{
	for (int32_t r = 0; r < detector->world.ranks; r++)
		detector->scratch[r] = slot->has[r] && slot->computed_s[r] > 0.0 ? slot->computed_s[r] : 0.0;
	double seconds = verdict_step_model_s(&detector->model, detector->scratch);
	return seconds > 0.0 ? log(seconds) : 0.0;
}

/* Keeps the longest waits of the step. A wait that is longer than the step cannot be. */
static void keep_waits(const struct wlb_verdict_detector *detector, const struct verdict_slot *slot,
                       struct verdict_wait *wait)
{
	for (int i = 0; i < VERDICT_WAITS; i++)
		wait[i] = (struct verdict_wait){.rank = -1};
	for (int32_t r = 0; r < detector->world.ranks; r++) {
		float seconds = (float)slot->loader_s[r];
		if (!slot->has[r] || !(slot->loader_s[r] <= slot->seconds[r]) ||
		    !(seconds > wait[VERDICT_WAITS - 1].seconds))
			continue;
		int place = VERDICT_WAITS - 1;
		for (; place > 0 && wait[place - 1].seconds < seconds; place--)
			wait[place] = wait[place - 1];
		wait[place] = (struct verdict_wait){r, seconds};
	}
}

void verdict_history_add(struct wlb_verdict_detector *detector, const struct verdict_slot *slot)
{
	int32_t found = 0;
	for (int32_t r = 0; r < detector->world.ranks; r++)
		if (slot->has[r] && slot->seconds[r] > 0.0)
			detector->scratch[found++] = slot->seconds[r];
	if (found == 0)
		return;
	double seconds = verdict_quantile(detector->scratch, found, 0.5);
	int disturbed = verdict_has_stood_still(detector, detector->time.job_s - seconds) || detector->compute.slow_count > 0 || detector->link.slow_count > 0 ||
	                detector->loader.slow_count > 0;
	struct verdict_past *past = &detector->history.past[detector->history.count++ % VERDICT_HISTORY];
	*past = (struct verdict_past){.step = slot->step,
	                              .ended_s = detector->time.now_s,
	                              .seconds = seconds,
	                              .ratio = log(seconds) - explained(detector, slot),
	                              .disturbed = disturbed};
	keep_waits(detector, slot, past->wait);
}

/* Returns the mean of the middle eight tenths, which single outliers do not move. */
static double middle_mean(double *values, int32_t count)
{
	double low = verdict_quantile(values, count, 0.1), high = verdict_quantile(values, count, 0.9), sum = 0.0;
	int32_t found = 0;
	for (int32_t i = 0; i < count; i++)
		if (values[i] >= low && values[i] <= high) {
			sum += values[i];
			found++;
		}
	return sum / found;
}

double verdict_history_cost_percent(const struct wlb_verdict_detector *detector, int64_t since_step)
{
	const struct verdict_history *history = &detector->history;
	double before[BEFORE_MAX], since[VERDICT_HISTORY];
	int32_t before_count = 0, since_count = 0;
	int64_t oldest = history->count > VERDICT_HISTORY ? history->count - VERDICT_HISTORY : 0;
	for (int64_t i = history->count - 1; i >= oldest; i--) {
		const struct verdict_past *past = &history->past[i % VERDICT_HISTORY];
		if (past->step >= since_step)
			since[since_count++] = past->ratio;
		else if (!past->disturbed && before_count < BEFORE_MAX)
			before[before_count++] = past->ratio;
	}
	if (before_count < BEFORE_MIN || since_count < SINCE_MIN)
		return -1.0;
	double longer = middle_mean(since, since_count) - middle_mean(before, before_count);
	return longer > 0.0 ? 100.0 * expm1(longer) : 0.0;
}

/* Returns the longest wait of a rank whose loader is not slow; -1 where that wait is not among the kept ones. */
static double others_wait_s(const struct wlb_verdict_detector *detector, const struct verdict_past *past)
{
	for (int i = 0; i < VERDICT_WAITS; i++)
		if (past->wait[i].rank < 0 || !verdict_shift_is_likely(&detector->loader, past->wait[i].rank))
			return (double)past->wait[i].seconds;
	return -1.0;
}

double verdict_history_loader_percent(const struct wlb_verdict_detector *detector, int64_t since_step)
{
	const struct verdict_history *history = &detector->history;
	int64_t oldest = history->count > VERDICT_HISTORY ? history->count - VERDICT_HISTORY : 0;
	double lost_s = 0.0, stepped_s = 0.0;
	int32_t steps = 0;
	for (int64_t i = history->count - 1; i >= oldest; i--) {
		const struct verdict_past *past = &history->past[i % VERDICT_HISTORY];
		if (past->step < since_step)
			continue;
		double others_s = others_wait_s(detector, past);
		if (others_s < 0.0)
			return -1.0;
		lost_s += (double)past->wait[0].seconds - others_s;
		stepped_s += past->seconds;
		steps++;
	}
	return steps >= SINCE_MIN && stepped_s > lost_s ? 100.0 * lost_s / (stepped_s - lost_s) : -1.0;
}

double verdict_history_began_s(const struct wlb_verdict_detector *detector, int64_t step)
{
	const struct verdict_history *history = &detector->history;
	int64_t oldest = history->count > VERDICT_HISTORY ? history->count - VERDICT_HISTORY : 0;
	double began_s = detector->time.now_s;
	for (int64_t i = history->count - 1; i >= oldest; i--) {
		began_s = history->past[i % VERDICT_HISTORY].ended_s;
		if (history->past[i % VERDICT_HISTORY].step < step)
			break;
	}
	return began_s;
}
