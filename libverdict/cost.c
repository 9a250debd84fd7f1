#include "libverdict/cost.h"

#include <math.h>
#include <stdlib.h>

int verdict_cost_init(struct verdict_cost *cost, const struct verdict_step_model *model)
{
	size_t ranks = (size_t)model->world->ranks, replicas = (size_t)model->replicas;
	cost->computed_s = calloc(VERDICT_COST_STEPS * ranks, sizeof(*cost->computed_s));
	cost->replica_s = calloc(VERDICT_COST_STEPS * replicas, sizeof(*cost->replica_s));
	cost->slow_since = calloc(replicas, sizeof(*cost->slow_since));
	cost->percent = -1.0;
	return cost->computed_s == NULL || cost->replica_s == NULL || cost->slow_since == NULL ? -1 : 0;
}

void verdict_cost_free(struct verdict_cost *cost)
{
	free(cost->computed_s);
	free(cost->replica_s);
	free(cost->slow_since);
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
	cost->modelled[cost->count % VERDICT_COST_STEPS] = 0;
	cost->count++;
}

/* Returns the first step that slow ranks have lengthened. */
static int64_t first_step(const struct wlb_verdict_detector *detector)
{
	int64_t first = INT64_MAX;
	for (int32_t r = 0; r < detector->world.ranks; r++)
		if (detector->compute.slow[r] && detector->compute.since_step[r] < first)
			first = detector->compute.since_step[r];
	return first;
}

/* Finds in which replicas there are ranks that are slow or likely to be, and since when. */
static void find_slow_replicas(struct wlb_verdict_detector *detector)
{
	const struct verdict_step_model *model = &detector->model;
	int64_t *slow_since = detector->cost.slow_since;
	for (int32_t replica = 0; replica < model->replicas; replica++)
		slow_since[replica] = INT64_MAX;
	for (int32_t r = 0; r < detector->world.ranks; r++) {
		int32_t replica = model->replica_of[r];
		if (verdict_shift_is_likely(&detector->compute, r) &&
		    detector->compute.since_step[r] < slow_since[replica])
			slow_since[replica] = detector->compute.since_step[r];
	}
}

/* Returns how long each replica was in a step that is kept, by the model: what does not change while the step is kept
 * is found once. */
static const double *model_replicas(struct wlb_verdict_detector *detector, int64_t number)
{
	struct verdict_cost *cost = &detector->cost;
	struct verdict_step_model *model = &detector->model;
	const float *computed_s = computed_of(detector, number);
	double *replica_s = cost->replica_s + (size_t)(number % VERDICT_COST_STEPS) * (size_t)model->replicas;
	if (cost->modelled[number % VERDICT_COST_STEPS])
		return replica_s;
	for (int32_t r = 0; r < detector->world.ranks; r++)
		detector->scratch[r] = (double)computed_s[r];
	for (int32_t replica = 0; replica < model->replicas; replica++)
		replica_s[replica] = verdict_step_model_replica_s(model, replica, detector->scratch);
	cost->modelled[number % VERDICT_COST_STEPS] = 1;
	return replica_s;
}

/* Returns how long a replica would have been had its slow ranks computed as long as their peers. */
static double replica_without_s(struct wlb_verdict_detector *detector, int32_t replica, int64_t number)
{
	const struct verdict_shift *test = &detector->compute;
	struct verdict_step_model *model = &detector->model;
	const struct verdict_lists *ranks = &model->of_pipeline, *pipelines = &model->of_replica;
	const float *computed_s = computed_of(detector, number);
	int64_t step = detector->cost.step[number % VERDICT_COST_STEPS];
	double *without_s = detector->scratch;
	for (int32_t p = pipelines->first[replica]; p < pipelines->first[replica + 1]; p++) {
		int32_t pipeline = pipelines->list[p];
		for (int32_t i = ranks->first[pipeline]; i < ranks->first[pipeline + 1]; i++) {
			int32_t r = ranks->list[i];
			without_s[r] = (double)computed_s[r];
			if (verdict_shift_is_likely(test, r) && step >= test->since_step[r])
				without_s[r] *= exp(-test->mean[r]);
		}
	}
	return verdict_step_model_replica_s(model, replica, without_s);
}

/* Returns by how many seconds a step that is kept would have been shorter. */
static double lost_s(struct wlb_verdict_detector *detector, int64_t number)
{
	const double *replica_s = model_replicas(detector, number);
	int64_t step = detector->cost.step[number % VERDICT_COST_STEPS];
	double with_s = 0.0, without_s = 0.0;
	for (int32_t replica = 0; replica < detector->model.replicas; replica++) {
		int is_slow = step >= detector->cost.slow_since[replica];
		double mine_s = is_slow ? replica_without_s(detector, replica, number) : replica_s[replica];
		with_s = replica_s[replica] > with_s ? replica_s[replica] : with_s;
		without_s = mine_s > without_s ? mine_s : without_s;
	}
	return with_s - without_s;
}

static double find_percent(struct wlb_verdict_detector *detector)
{
	struct verdict_cost *cost = &detector->cost;
	int64_t first = first_step(detector);
	int64_t oldest = cost->count > VERDICT_COST_STEPS ? cost->count - VERDICT_COST_STEPS : 0;
	double lost = 0.0, stepped = 0.0;
	find_slow_replicas(detector);
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
