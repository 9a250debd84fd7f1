#include "tests/bench/verdicts/step_trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/verdicts/constants.h"

static const double slot_bytes[SLOTS] = {[SLOT_TP] = 4e9,          [SLOT_CP] = 1e9, [SLOT_FORWARD_IN] = 2e8,
                                         [SLOT_BACKWARD_IN] = 2e8, [SLOT_DP] = 2e9, [SLOT_WORLD] = 0.0};

void step_trace_init(struct step_trace *trace, const struct cluster *cluster, uint64_t seed)
{
	size_t ranks = (size_t)cluster->world->ranks;
	*trace = (struct step_trace){
		.cluster = cluster, .chance = chance_of(seed, 1), .noise = 1.0, .lasting_times = 1.0};
	trace->lasting = must_allocate(ranks, sizeof(double));
	trace->correlated = must_allocate(ranks, sizeof(double));
	trace->computed_s = must_allocate(ranks, sizeof(double));
	trace->healthy_s = must_allocate(ranks, sizeof(double));
	node_clocks_init(&trace->clocks, cluster->world->nodes, seed);
	trace->work = must_allocate((size_t)cluster->layout.dp, sizeof(double));
	trace->stage_s = must_allocate(2 * (size_t)(cluster->layout.dp * cluster->layout.pp), sizeof(double));
	for (size_t r = 0; r < ranks; r++) {
		trace->lasting[r] = rank_spread * chance_normal(&trace->chance);
		trace->correlated[r] = slow_noise * chance_normal(&trace->chance);
	}
}

void step_trace_free(struct step_trace *trace)
{
	node_clocks_free(&trace->clocks);
	free(trace->lasting);
	free(trace->correlated);
	free(trace->computed_s);
	free(trace->healthy_s);
	free(trace->work);
	free(trace->stage_s);
}

double step_trace_noise(struct step_trace *trace, int32_t rank)
{
	struct chance *chance = &trace->chance;
	double innovation = sqrt(1.0 - slow_correlation * slow_correlation) * slow_noise * chance_normal(chance);
	trace->correlated[rank] = slow_correlation * trace->correlated[rank] + innovation;
	double noise =
		trace->lasting[rank] + trace->noise * (trace->correlated[rank] + step_noise * chance_normal(chance));
	if (chance_uniform(chance) < outlier_chance)
		noise += log1p(-outlier_mean * log1p(-chance_uniform(chance)));
	return noise;
}

/* The faults that a rank has in this step. */
static double fault_factor(const struct step_trace *trace, int32_t r)
{
	double factor = 1.0;
	for (int32_t f = 0; f < trace->fault_count; f++) {
		const struct fault *fault = &trace->faults[f];
		if (trace->step < fault->from_step)
			continue;
		if ((fault->kind == WLB_VERDICT_SLOW_COMPUTE && fault->rank == r) ||
		    (fault->kind == WLB_VERDICT_SLOW_NODE && fault->node == trace->cluster->world->node_of[r]))
			factor *= fault->factor;
	}
	return factor;
}

static double loader_factor(const struct step_trace *trace, int32_t r, double *storage)
{
	double share = 0.0;
	*storage = 0.3;
	for (int32_t f = 0; f < trace->fault_count; f++) {
		const struct fault *fault = &trace->faults[f];
		if (trace->step < fault->from_step ||
		    (fault->kind != WLB_VERDICT_SLOW_LOADER && fault->kind != WLB_VERDICT_SLOW_STORAGE) ||
		    (fault->rank >= 0 && fault->rank != r) ||
		    (fault->node >= 0 && fault->node != trace->cluster->world->node_of[r]))
			continue;
		share = fault->factor;
		*storage = fault->kind == WLB_VERDICT_SLOW_STORAGE ? 0.95 : 0.1;
	}
	return share;
}

static double link_factor(const struct step_trace *trace, int32_t r, int32_t g)
{
	const struct wlb_verdict_world *world = trace->cluster->world;
	const struct wlb_verdict_group *group = &world->groups[g];
	double factor = 1.0;
	for (int32_t f = 0; f < trace->fault_count; f++) {
		const struct fault *fault = &trace->faults[f];
		if (trace->step < fault->from_step)
			continue;
		if (fault->kind == WLB_VERDICT_SLOW_LINK && fault->group == g)
			factor = fault->factor;
		if (fault->kind != WLB_VERDICT_SLOW_NIC || !trace->cluster->crosses[g])
			continue;
		if (world->node_of[r] == fault->node ||
		    (group->kind == WLB_VERDICT_PP && (world->node_of[group->members[0]] == fault->node ||
		                                       world->node_of[group->members[1]] == fault->node)))
			factor = fault->factor;
	}
	return factor;
}

/* Returns the time of the step: stages in 1F1B with as many micro-batches as its bubble is a fourth of the step, then
 * the slowest replica. */
static double combine(const struct step_trace *trace, const double *stage_s)
{
	int32_t pp = trace->cluster->layout.pp;
	double longest = 0.0, micro_batches = CLUSTER_MICRO_BATCHES * pp;
	for (int32_t d = 0; d < trace->cluster->layout.dp; d++) {
		double slowest = 0.0, sum = 0.0;
		for (int32_t s = 0; s < pp; s++) {
			slowest = fmax(slowest, stage_s[d * pp + s]);
			sum += stage_s[d * pp + s];
		}
		double mine = pp == 1 ? slowest : (micro_batches - 1.0) / micro_batches * slowest + sum / micro_batches;
		longest = fmax(longest, mine);
	}
	return longest;
}

static void compute(struct step_trace *trace, double times)
{
	const struct cluster *cluster = trace->cluster;
	int32_t stages = cluster->layout.dp * cluster->layout.pp, inner = cluster->layout.tp * cluster->layout.cp;
	memset(trace->stage_s, 0, 2 * (size_t)stages * sizeof(double));
	double *error = must_allocate((size_t)cluster->layout.dp, sizeof(double));
	for (int32_t d = 0; d < cluster->layout.dp; d++) {
		trace->work[d] = times * exp(work_spread * chance_normal(&trace->chance));
		error[d] = exp(prediction_error * chance_normal(&trace->chance));
	}
	for (int32_t r = 0; r < cluster->world->ranks; r++) {
		int32_t stage = r / inner, d = stage / cluster->layout.pp, s = stage % cluster->layout.pp;
		double usual =
			step_s * trace->work[d] * error[d] * (s == cluster->layout.pp - 1 && s > 0 ? last_stage : 1.0);
		trace->healthy_s[r] = usual * exp(step_trace_noise(trace, r));
		trace->computed_s[r] = trace->healthy_s[r] * fault_factor(trace, r);
		trace->stage_s[stage] = fmax(trace->stage_s[stage], trace->computed_s[r]);
		trace->stage_s[stages + stage] = fmax(trace->stage_s[stages + stage], trace->healthy_s[r]);
	}
	free(error);
	trace->seconds = combine(trace, trace->stage_s);
	trace->without_s[OF_COMPUTATION] = combine(trace, trace->stage_s + stages);
}

static int32_t transfers_of(struct step_trace *trace, int32_t r, struct wlb_verdict_transfer *transfers,
                            double *longer_s)
{
	int32_t count = 0;
	for (int s = 0; s < SLOTS; s++) {
		int32_t g = trace->cluster->group[r][s];
		if (g < 0 || !(slot_bytes[s] > 0.0))
			continue;
		double noise = link_noise * chance_normal(&trace->chance);
		if (chance_uniform(&trace->chance) < link_outlier_chance)
			noise += log1p(-link_outlier_mean * log1p(-chance_uniform(&trace->chance)));
		double usual_s = transfer_share * step_s * exp(noise), factor = link_factor(trace, r, g);
		*longer_s = fmax(*longer_s, usual_s * (factor - 1.0));
		transfers[count++] = (struct wlb_verdict_transfer){
			.group = g, .calls = 8, .transfer_s = usual_s * factor, .bytes = slot_bytes[s]};
	}
	return count;
}

static void set_values(struct step_trace *trace, int32_t r, struct wlb_verdict_step *step)
{
	step->has_loss = cluster_stage(trace->cluster, r) == trace->cluster->layout.pp - 1;
	step->loss = 3.0 * exp(0.03 * chance_normal(&trace->chance));
	step->has_gradient_norm = 1;
	step->gradient_norm = exp(0.2 * chance_normal(&trace->chance));
	for (int32_t f = 0; f < trace->fault_count; f++) {
		const struct fault *fault = &trace->faults[f];
		if (fault->kind == WLB_VERDICT_BAD_VALUES && fault->rank == r && trace->step >= fault->from_step)
			step->gradient_norm = fault->finite ? step->gradient_norm * fault->factor : NAN;
	}
}

/* Sets the longest waits of any rank, with and without the faults, as shares of the computation. */
static void wait_for_loader(struct step_trace *trace, struct wlb_verdict_step *step, double *waited, double *usually)
{
	double storage, share = loader_factor(trace, step->rank, &storage);
	double usual = -loader_mean * log1p(-chance_uniform(&trace->chance));
	if (chance_uniform(&trace->chance) < loader_outlier_chance)
		usual -= loader_outlier_mean * log1p(-chance_uniform(&trace->chance));
	double all = usual + share * chance_between(&trace->chance, 0.7, 1.3);
	step->loader_s = trace->seconds * all;
	step->storage_s = step->loader_s * storage;
	*usually = fmax(*usually, usual);
	*waited = fmax(*waited, all);
}

/* Turns the lengths of time that a rank has measured into those that the clock of its node shows. Where it is set
 * during the step, the lengths that begin before and end after are those of no time. */
static void measure_by_clock(const struct step_trace *trace, struct wlb_verdict_step *step)
{
	int32_t node = trace->cluster->world->node_of[step->rank];
	double ends_s = trace->begins_s + trace->seconds;
	double times = 1.0 + trace->clocks.drift[node];
	step->seconds = node_clocks_length_s(&trace->clocks, node, trace->begins_s, ends_s);
	step->computed_s *= times;
	if (step->seconds < 0.0)
		step->computed_s = step->seconds;
	step->loader_s *= times;
	step->storage_s *= times;
	for (int32_t i = 0; i < step->transfer_count; i++)
		((struct wlb_verdict_transfer *)step->transfers)[i].transfer_s *= times;
}

void step_trace_next(struct step_trace *trace, double times, struct wlb_verdict_detector *detector)
{
	int32_t ranks = trace->cluster->world->ranks;
	double waited = 0.0, usually = 0.0, transferred_s = 0.0;
	compute(trace, times);
	struct wlb_verdict_step *steps = must_allocate((size_t)ranks, sizeof(*steps));
	struct wlb_verdict_transfer(*transfers)[SLOTS] = NULL;
	if (trace->transfers)
		transfers = must_allocate((size_t)ranks, sizeof(*transfers));
	for (int32_t r = 0; r < ranks; r++) {
		steps[r] = (struct wlb_verdict_step){.rank = r,
		                                     .step = trace->step,
		                                     .computed_s = trace->computed_s[r],
		                                     .work = trace->work[cluster_replica(trace->cluster, r)],
		                                     .loader_s = -1.0};
		if (trace->loaders)
			wait_for_loader(trace, &steps[r], &waited, &usually);
		if (trace->values)
			set_values(trace, r, &steps[r]);
		if (trace->transfers) {
			steps[r].transfers = transfers[r];
			steps[r].transfer_count = transfers_of(trace, r, transfers[r], &transferred_s);
		}
	}
	double transfer_s = transfer_share * step_s, computed_s = trace->seconds;
	trace->seconds = computed_s * (1.0 + waited) + transfer_s + transferred_s;
	trace->without_s[OF_COMPUTATION] += trace->seconds - computed_s;
	trace->without_s[OF_THE_REST] = computed_s * (1.0 + usually) + transfer_s;
	for (int32_t r = 0; detector != NULL && r < ranks; r++) {
		measure_by_clock(trace, &steps[r]);
		wlb_verdict_take_step(detector, &steps[r], NULL);
	}
	free(steps);
	free(transfers);
	trace->begins_s += trace->seconds;
	trace->step++;
}
