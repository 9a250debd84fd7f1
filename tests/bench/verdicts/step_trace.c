#include "tests/bench/verdicts/step_trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/verdicts/constants.h"

void step_trace_init(struct step_trace *trace, const struct cluster *cluster, uint64_t seed,
                     struct step_reports reports)
{
	size_t ranks = (size_t)cluster->world->ranks;
	*trace = (struct step_trace){
		.cluster = cluster, .reports = reports, .chance = chance_of(seed, 1), .noise = 1.0, .first_work = 1.0};
	trace->lasting = must_allocate(ranks, sizeof(double));
	trace->correlated = must_allocate(ranks, sizeof(double));
	trace->computed_s = must_allocate(ranks, sizeof(double));
	node_clocks_init(&trace->clocks, cluster->world->nodes, seed);
	trace->work = must_allocate((size_t)cluster->layout.dp, sizeof(double));
	trace->stage_s = must_allocate(2 * (size_t)(cluster->layout.dp * cluster->layout.pp), sizeof(double));
	trace->draws = step_draws_new(trace);
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
	free(trace->work);
	free(trace->stage_s);
	step_draws_free(&trace->draws);
	free(trace->effects.compute_times);
	free(trace->effects.loader_share);
	free(trace->effects.storage_share);
	free(trace->effects.transfer_times);
}

void step_trace_leave_out_fixed_time(struct step_trace *trace)
{
	trace->fixed_share = unpredicted_share;
	trace->first_work = little_work;
}

struct step_draws step_draws_new(const struct step_trace *trace)
{
	const struct cluster *cluster = trace->cluster;
	size_t ranks = (size_t)cluster->world->ranks, transfers = (size_t)cluster->first_transfer[ranks];
	size_t loaders = trace->reports.loaders ? ranks : 0, values = trace->reports.values ? ranks : 0;
	return (struct step_draws){
		.work = must_allocate((size_t)cluster->layout.dp, sizeof(double)),
		.healthy_s = must_allocate(ranks, sizeof(double)),
		.waited = must_allocate(loaders, sizeof(double)),
		.wait_times = must_allocate(loaders, sizeof(double)),
		.loss = must_allocate(values, sizeof(double)),
		.gradient = must_allocate(values, sizeof(double)),
		.transfer_s = must_allocate(trace->reports.transfers ? transfers : 0, sizeof(double)),
	};
}

void step_draws_free(struct step_draws *draws)
{
	free(draws->work);
	free(draws->healthy_s);
	free(draws->waited);
	free(draws->wait_times);
	free(draws->loss);
	free(draws->gradient);
	free(draws->transfer_s);
}

/* The logarithm of what a rank's computation takes beyond its work. */
static double draw_noise(struct step_trace *trace, int32_t rank)
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

static void draw_computation(struct step_trace *trace, double times, struct step_draws *draws)
{
	const struct cluster *cluster = trace->cluster;
	int32_t pp = cluster->layout.pp;
	double *error = must_allocate((size_t)cluster->layout.dp, sizeof(double));
	for (int32_t d = 0; d < cluster->layout.dp; d++) {
		draws->work[d] = times * exp(work_spread * chance_normal(&trace->chance));
		draws->work[d] *= d == 0 ? trace->first_work : 1.0;
		error[d] = exp(prediction_error * chance_normal(&trace->chance));
	}
	for (int32_t r = 0; r < cluster->world->ranks; r++) {
		int32_t d = cluster->replica[r], s = cluster->stage[r];
		double work = trace->fixed_share * times + (1.0 - trace->fixed_share) * draws->work[d];
		double usual = step_s * work * error[d] * (s == pp - 1 && s > 0 ? last_stage : 1.0);
		draws->healthy_s[r] = usual * exp(draw_noise(trace, r));
	}
	free(error);
}

static void draw_wait(struct chance *chance, int32_t r, struct step_draws *draws)
{
	draws->waited[r] = -loader_mean * log1p(-chance_uniform(chance));
	if (chance_uniform(chance) < loader_outlier_chance)
		draws->waited[r] -= loader_outlier_mean * log1p(-chance_uniform(chance));
	draws->wait_times[r] = chance_between(chance, 0.7, 1.3);
}

static double draw_transfer_s(struct chance *chance)
{
	double noise = link_noise * chance_normal(chance);
	if (chance_uniform(chance) < link_outlier_chance)
		noise += log1p(-link_outlier_mean * log1p(-chance_uniform(chance)));
	return transfer_share * step_s * exp(noise);
}

void step_trace_draw(struct step_trace *trace, double times, struct step_draws *draws)
{
	const int32_t *first = trace->cluster->first_transfer;
	struct chance *chance = &trace->chance;
	draw_computation(trace, times, draws);
	for (int32_t r = 0; r < trace->cluster->world->ranks; r++) {
		if (trace->reports.loaders)
			draw_wait(chance, r, draws);
		if (trace->reports.values) {
			draws->loss[r] = 3.0 * exp(0.03 * chance_normal(chance));
			draws->gradient[r] = exp(0.2 * chance_normal(chance));
		}
		for (int32_t t = first[r]; trace->reports.transfers && t < first[r + 1]; t++)
			draws->transfer_s[t] = draw_transfer_s(chance);
	}
}

/* By what a fault makes a transfer of a rank longer. */
static double transfer_times(const struct cluster *cluster, const struct fault *fault, int32_t r, int32_t g)
{
	const struct wlb_verdict_world *world = cluster->world;
	const struct wlb_verdict_group *group = &world->groups[g];
	if (fault->kind == WLB_VERDICT_SLOW_LINK && fault->group == g)
		return fault->factor;
	if (fault->kind != WLB_VERDICT_SLOW_NIC || !cluster->crosses[g])
		return 1.0;
	int touches = world->node_of[r] == fault->node ||
	              (group->kind == WLB_VERDICT_PP && (world->node_of[group->members[0]] == fault->node ||
	                                                 world->node_of[group->members[1]] == fault->node));
	return touches ? fault->factor : 1.0;
}

/* Adds what a fault does to a rank. */
static void add_effects(struct step_trace *trace, const struct fault *fault, int32_t r)
{
	const struct cluster *cluster = trace->cluster;
	struct step_effects *effects = &trace->effects;
	int32_t node = cluster->world->node_of[r];
	int all = fault->rank < 0 && fault->node < 0;
	if ((fault->kind == WLB_VERDICT_SLOW_COMPUTE && fault->rank == r) ||
	    (fault->kind == WLB_VERDICT_SLOW_NODE && fault->node == node))
		effects->compute_times[r] *= fault->factor;
	if ((fault->kind == WLB_VERDICT_SLOW_LOADER || fault->kind == WLB_VERDICT_SLOW_STORAGE) &&
	    (all || fault->rank == r || fault->node == node)) {
		effects->loader_share[r] = fault->factor;
		effects->storage_share[r] = fault->kind == WLB_VERDICT_SLOW_STORAGE ? 0.95 : 0.1;
	}
	for (int32_t t = cluster->first_transfer[r]; t < cluster->first_transfer[r + 1]; t++) {
		double times = transfer_times(cluster, fault, r, cluster->transfer[t].group);
		if (times > 1.0)
			effects->transfer_times[t] = times;
	}
}

void step_trace_plant(struct step_trace *trace, const struct fault *faults, int32_t count)
{
	size_t ranks = (size_t)trace->cluster->world->ranks;
	int32_t transfers = trace->cluster->first_transfer[ranks];
	struct step_effects *effects = &trace->effects;
	trace->faults = faults;
	trace->fault_count = count;
	effects->compute_times = must_allocate(ranks, sizeof(double));
	effects->loader_share = must_allocate(ranks, sizeof(double));
	effects->storage_share = must_allocate(ranks, sizeof(double));
	effects->transfer_times = must_allocate((size_t)transfers, sizeof(double));
	for (int32_t t = 0; t < transfers; t++)
		effects->transfer_times[t] = 1.0;
	for (int32_t r = 0; r < (int32_t)ranks; r++) {
		effects->compute_times[r] = 1.0;
		effects->storage_share[r] = 0.3;
		for (int32_t f = 0; f < count; f++)
			add_effects(trace, &faults[f], r);
	}
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

/* Sets what the ranks compute, and the lengths of the step's computation with and without faults. */
static void compute(struct step_trace *trace, const struct step_draws *draws)
{
	const struct cluster *cluster = trace->cluster;
	const double *times = trace->effects.compute_times;
	int32_t inner = cluster->layout.tp * cluster->layout.cp, stages = cluster->layout.dp * cluster->layout.pp;
	double *with_s = trace->stage_s, *without_s = trace->stage_s + stages;
	memcpy(trace->work, draws->work, (size_t)cluster->layout.dp * sizeof(double));
	for (int32_t stage = 0; stage < stages; stage++) {
		with_s[stage] = without_s[stage] = 0.0;
		for (int32_t r = stage * inner; r < (stage + 1) * inner; r++) {
			trace->computed_s[r] = draws->healthy_s[r] * (times != NULL ? times[r] : 1.0);
			with_s[stage] = fmax(with_s[stage], trace->computed_s[r]);
			without_s[stage] = fmax(without_s[stage], draws->healthy_s[r]);
		}
	}
	trace->seconds = combine(trace, with_s);
	trace->without_s[OF_COMPUTATION] = combine(trace, without_s);
}

/* The share of the computation that a rank waits for its loader. */
static double wait_of(const struct step_trace *trace, const struct step_draws *draws, int32_t r)
{
	const double *share = trace->effects.loader_share;
	return draws->waited[r] + (share != NULL ? share[r] : 0.0) * draws->wait_times[r];
}

static double transfer_s_of(const struct step_trace *trace, const struct step_draws *draws, int32_t t)
{
	const double *times = trace->effects.transfer_times;
	return draws->transfer_s[t] * (times != NULL ? times[t] : 1.0);
}

/* Adds what the longest waits of any rank, and the longest delays of messages, make of the step's length. */
static void add_waits(struct step_trace *trace, const struct step_draws *draws)
{
	const struct cluster *cluster = trace->cluster;
	const double *times = trace->effects.transfer_times;
	int32_t ranks = cluster->world->ranks;
	double waited = 0.0, usually = 0.0, transferred_s = 0.0, computed_s = trace->seconds;
	double transfer_s = transfer_share * step_s;
	for (int32_t r = 0; trace->reports.loaders && r < ranks; r++) {
		usually = fmax(usually, draws->waited[r]);
		waited = fmax(waited, wait_of(trace, draws, r));
	}
	for (int32_t t = 0; trace->reports.transfers && times != NULL && t < cluster->first_transfer[ranks]; t++)
		transferred_s = fmax(transferred_s, draws->transfer_s[t] * (times[t] - 1.0));
	trace->seconds = computed_s * (1.0 + waited) + transfer_s + transferred_s;
	trace->without_s[OF_COMPUTATION] += trace->seconds - computed_s;
	trace->without_s[OF_THE_REST] = computed_s * (1.0 + usually) + transfer_s;
}

static void set_values(const struct step_trace *trace, const struct step_draws *draws, struct wlb_verdict_step *step)
{
	int32_t r = step->rank;
	step->has_loss = trace->cluster->stage[r] == trace->cluster->layout.pp - 1;
	step->loss = draws->loss[r];
	step->has_gradient_norm = 1;
	step->gradient_norm = draws->gradient[r];
	for (int32_t f = 0; f < trace->fault_count; f++) {
		const struct fault *fault = &trace->faults[f];
		if (fault->kind == WLB_VERDICT_BAD_VALUES && fault->rank == r)
			step->gradient_norm = fault->finite ? step->gradient_norm * fault->factor : NAN;
	}
}

/* Sets the transfers of a rank, whose clock shows `times` the time. */
static void set_transfers(const struct step_trace *trace, const struct step_draws *draws, double times,
                          struct wlb_verdict_transfer *transfers, struct wlb_verdict_step *step)
{
	int32_t first = trace->cluster->first_transfer[step->rank];
	step->transfers = transfers;
	step->transfer_count = trace->cluster->first_transfer[step->rank + 1] - first;
	for (int32_t i = 0; i < step->transfer_count; i++) {
		transfers[i] = trace->cluster->transfer[first + i];
		transfers[i].transfer_s = transfer_s_of(trace, draws, first + i) * times;
	}
}

/* Reports what a rank has measured, as the clock of its node shows it; `shown_s` is the step's length by that clock.
 * Where the clock is set during the step, the lengths that begin before and end after are those of no time. */
static void report(const struct step_trace *trace, const struct step_draws *draws, int32_t r, double computed_s,
                   double shown_s, struct wlb_verdict_detector *detector)
{
	double times = 1.0 + trace->clocks.drift[trace->cluster->world->node_of[r]];
	struct wlb_verdict_transfer transfers[SLOTS];
	struct wlb_verdict_step step = {.rank = r,
	                                .step = trace->step,
	                                .seconds = shown_s,
	                                .computed_s = shown_s < 0.0 ? shown_s : trace->computed_s[r] * times,
	                                .work = trace->work[trace->cluster->replica[r]],
	                                .loader_s = -1.0 * times};
	if (trace->reports.loaders) {
		const double *storage = trace->effects.storage_share;
		double loader_s = computed_s * wait_of(trace, draws, r);
		step.loader_s = loader_s * times;
		step.storage_s = loader_s * (storage != NULL ? storage[r] : 0.3) * times;
	}
	if (trace->reports.values)
		set_values(trace, draws, &step);
	if (trace->reports.transfers)
		set_transfers(trace, draws, times, transfers, &step);
	wlb_verdict_take_step(detector, &step, NULL);
}

void step_trace_take(struct step_trace *trace, const struct step_draws *draws, struct wlb_verdict_detector *detector)
{
	const struct wlb_verdict_world *world = trace->cluster->world;
	compute(trace, draws);
	double computed_s = trace->seconds, shown_s = 0.0;
	add_waits(trace, draws);
	for (int32_t r = 0; detector != NULL && r < world->ranks; r++) {
		if (r == 0 || world->node_of[r] != world->node_of[r - 1])
			shown_s = node_clocks_length_s(&trace->clocks, world->node_of[r], trace->begins_s,
			                               trace->begins_s + trace->seconds);
		report(trace, draws, r, computed_s, shown_s, detector);
	}
	trace->begins_s += trace->seconds;
	trace->step++;
}

void step_trace_next(struct step_trace *trace, double times, struct wlb_verdict_detector *detector)
{
	step_trace_draw(trace, times, &trace->draws);
	step_trace_take(trace, &trace->draws, detector);
}
