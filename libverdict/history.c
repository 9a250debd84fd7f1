#include "libverdict/history.h"

#include <math.h>

#include "libverdict/select.h"

/* Of the healthy steps before a fault, the newest; fewer than LEAST tell nothing. */
enum { MOST_BEFORE = 96, LEAST_BEFORE = 8, LEAST_SINCE = 4 };

/* Returns the logarithm of what the computation of the ranks explains of the step's length; 0 where none is known. */
static double explained(struct wlb_verdict_detector *detector, const struct verdict_slot *slot)
{
	for (int32_t r = 0; r < detector->world.ranks; r++)
		detector->scratch[r] = slot->has[r] && slot->computed_s[r] > 0.0 ? slot->computed_s[r] : 0.0;
	double seconds = verdict_step_model_s(&detector->model, detector->scratch);
	return seconds > 0.0 ? log(seconds) : 0.0;
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
	int disturbed = detector->standstill || detector->compute.slow_count > 0 || detector->link.slow_count > 0 ||
	                detector->loader.slow_count > 0;
	detector->history.past[detector->history.count++ % VERDICT_HISTORY] =
		(struct verdict_past){.step = slot->step,
	                              .ended_s = detector->time.now_s,
	                              .ratio = log(seconds) - explained(detector, slot),
	                              .disturbed = disturbed};
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
	double before[MOST_BEFORE], since[VERDICT_HISTORY];
	int32_t before_count = 0, since_count = 0;
	int64_t oldest = history->count > VERDICT_HISTORY ? history->count - VERDICT_HISTORY : 0;
	for (int64_t i = history->count - 1; i >= oldest; i--) {
		const struct verdict_past *past = &history->past[i % VERDICT_HISTORY];
		if (past->step >= since_step)
			since[since_count++] = past->ratio;
		else if (!past->disturbed && before_count < MOST_BEFORE)
			before[before_count++] = past->ratio;
	}
	if (before_count < LEAST_BEFORE || since_count < LEAST_SINCE)
		return -1.0;
	double longer = middle_mean(since, since_count) - middle_mean(before, before_count);
	return longer > 0.0 ? 100.0 * expm1(longer) : 0.0;
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
