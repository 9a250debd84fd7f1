#include "libverdict/cost.h"

#include <math.h>
#include <stdlib.h>

int verdict_cost_init(struct verdict_cost *cost, int32_t ranks)
{
	cost->computed_s = calloc((size_t)VERDICT_COST_STEPS * (size_t)ranks, sizeof(*cost->computed_s));
	cost->percent = -1.0;
	return cost->computed_s == NULL ? -1 : 0;
}

void verdict_cost_free(struct verdict_cost *cost)
{
	free(cost->computed_s);
}

static float *computed_of(const struct wlb_verdict_detector *detector, int64_t number)
{
	return detector->cost.computed_s + (size_t)(number % VERDICT_COST_STEPS) * (size_t)detector->world.ranks;
}

void verdict_cost_step(struct wlb_verdict_detector *detector, const struct verdict_slot *slot)
{
	struct verdict_cost *cost = &detector->cost;
	float *computed_s = computed_of(detector, cost->count);
	double seconds = 0.0;
	for (int32_t r = 0; r < detector->world.ranks; r++) {
		computed_s[r] = slot->has[r] && slot->computed_s[r] > 0.0 ? (float)slot->computed_s[r] : 0.0F;
		seconds = slot->has[r] && slot->seconds[r] > seconds ? slot->seconds[r] : seconds;
	}
	cost->step[cost->count % VERDICT_COST_STEPS] = slot->step;
	cost->seconds[cost->count % VERDICT_COST_STEPS] = seconds;
	cost->count++;
}

/* Returns the first step of those that slow ranks have lengthened. */
static int64_t first_step(const struct wlb_verdict_detector *detector)
{
	int64_t first = INT64_MAX;
	for (int32_t r = 0; r < detector->world.ranks; r++)
		if (detector->compute.slow[r] && detector->compute.since_step[r] < first)
			first = detector->compute.since_step[r];
	return first;
}

/* Returns by how many seconds a step that is kept would have been shorter. */
static double lost_s(struct wlb_verdict_detector *detector, int64_t number)
{
	const struct verdict_shift *test = &detector->compute;
	const float *computed_s = computed_of(detector, number);
	int64_t step = detector->cost.step[number % VERDICT_COST_STEPS];
	double *without_s = detector->scratch;
	for (int32_t r = 0; r < detector->world.ranks; r++)
		without_s[r] = (double)computed_s[r];
	double with_s = verdict_step_model_s(&detector->model, without_s);
	for (int32_t r = 0; r < detector->world.ranks; r++)
		if (verdict_shift_is_likely(test, r) && step >= test->since_step[r])
			without_s[r] *= exp(-test->mean[r]);
	return with_s - verdict_step_model_s(&detector->model, without_s);
}

static double find_percent(struct wlb_verdict_detector *detector)
{
	struct verdict_cost *cost = &detector->cost;
	int64_t first = first_step(detector);
	int64_t oldest = cost->count > VERDICT_COST_STEPS ? cost->count - VERDICT_COST_STEPS : 0;
	double lost = 0.0, stepped = 0.0;
	for (int64_t number = cost->count - 1; number >= oldest; number--) {
		double seconds = cost->seconds[number % VERDICT_COST_STEPS];
		if (cost->step[number % VERDICT_COST_STEPS] < first)
			continue;
		double lost_here = lost_s(detector, number);
		/* A step that is told as shorter than what it lost tells nothing. */
		if (!(lost_here < seconds))
			continue;
		lost += lost_here;
		stepped += seconds;
	}
	return stepped > lost ? 100.0 * lost / (stepped - lost) : -1.0;
}

double verdict_cost_percent(struct wlb_verdict_detector *detector)
{
	struct verdict_cost *cost = &detector->cost;
	if (cost->told != cost->count)
		cost->percent = find_percent(detector);
	cost->told = cost->count;
	return cost->percent;
}
