/* Simulates one training step: the pipelines of all replicas, then the communication between them. */
#include "libwlb/capacity.h"
#include "libwlb/cost/plan_sizes.h"
#include "libwlb/simulation/sim_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int reserve(struct wlb_sim *sim, size_t count, struct wlb_error *error)
{
	size_t tokens = sim->tokens_capacity, places = sim->tokens_capacity;
	if (wlb_grow((void **)&sim->tokens, &tokens, count, sizeof(*sim->tokens)) < 0 ||
	    wlb_grow((void **)&sim->places, &places, count, sizeof(*sim->places)) < 0)
		return wlb_fail(error, "out of memory for a micro-batch of %zu documents", count);
	sim->tokens_capacity = tokens; /* both have the same capacity */
	return 0;
}

/* Takes the tokens of a span as those of document `to`. */
static int take_span(struct wlb_sim *sim, const struct wlb_step *step, size_t span, size_t to, struct wlb_error *error)
{
	sim->tokens[to] = step->spans[span].span.tokens;
	if (sim->tokens[to] >= 0)
		return 0;
	return wlb_fail(error, "span %zu has %lld tokens: it must not be negative", span, (long long)sim->tokens[to]);
}

/* Sets the load of every micro-batch where it is one of all replicas, whichever the step has its spans in. */
static int load_placed_step(struct wlb_sim *sim, const struct wlb_step *step, struct wlb_error *error)
{
	struct wlb_placement placement;
	int32_t batches = sim->options.plan.micro_batches;
	if (reserve(sim, step->count, error) < 0)
		return -1;
	for (size_t i = 0; i < step->count; i++)
		if (take_span(sim, step, i, i, error) < 0)
			return -1;
	sim->ranks = step->micro_batches / batches * sim->options.plan.layout.cp;
	if (wlb_sim_place_step(sim, step->count, &placement, error) < 0)
		return -1;
	for (int32_t m = 0; m < batches; m++) {
		size_t count = 0;
		for (size_t i = 0; i < step->count; i++) {
			if (placement.places[i].micro_batch != m)
				continue;
			sim->tokens[count] = step->spans[i].span.tokens;
			sim->places[count++] = placement.places[i];
		}
		memcpy(sim->rank_loads, placement.loads + (size_t)m * (size_t)sim->ranks,
		       (size_t)sim->ranks * sizeof(*sim->rank_loads));
		wlb_sim_load(sim, count, &sim->loads[m]);
		if (sim->ranks > 1 && sim->loads[m].tokens > 0)
			wlb_sim_set_lanes(sim, m, count, &sim->loads[m]);
	}
	sim->replicas = 1;
	return 0;
}

/* Sets the load of every micro-batch, in the order of the step. On error the number of replicas stays: it is
 * the number of the step before, which the timeline shows. */
static int load_step(struct wlb_sim *sim, const struct wlb_step *step, struct wlb_error *error)
{
	const struct wlb_plan *plan = &sim->options.plan;
	int64_t most = (int64_t)plan->layout.dp * plan->micro_batches;
	if (step->micro_batches < 1 || step->micro_batches > most || step->micro_batches % plan->micro_batches != 0)
		return wlb_fail(error,
		                "the step has %d micro-batches: the plan runs dp x micro_batches, %d x %d, and a "
		                "sample of its replicas is a multiple of the latter",
		                step->micro_batches, plan->layout.dp, plan->micro_batches);
	size_t at = 0;
	if (plan->dynamic_cp > 0)
		return load_placed_step(sim, step, error);
	if (sim->options.attention == WLB_SIM_SERVERS)
		wlb_sim_set_served(sim, step);
	for (int32_t j = 0; j < step->micro_batches; j++) {
		size_t first = at;
		while (at < step->count && step->spans[at].micro_batch == j)
			at++;
		if (reserve(sim, at - first, error) < 0)
			return -1;
		for (size_t i = first; i < at; i++)
			if (take_span(sim, step, i, i - first, error) < 0)
				return -1;
		wlb_sim_load(sim, at - first, &sim->loads[j]);
	}
	if (at != step->count)
		return wlb_fail(error,
		                "span %zu is of micro-batch %d: spans must be in the order of micro-batches, 0 "
		                "to %d",
		                at, step->spans[at].micro_batch, step->micro_batches - 1);
	sim->replicas = step->micro_batches / plan->micro_batches;
	return 0;
}

/* ZeRO-2 and 3 synchronize the replicas in every micro-batch: all replicas take as long as the one with the most work.
 */
static const struct wlb_sim_load *load_of(const struct wlb_sim *sim, int32_t replica, int32_t j)
{
	int each_pass = wlb_sim_shards_each_pass(sim);
	const struct wlb_sim_load *load = &sim->loads[(size_t)j * sim->replicas + replica];
	for (int32_t r = 0; each_pass && r < sim->replicas; r++) {
		const struct wlb_sim_load *other = &sim->loads[(size_t)j * sim->replicas + r];
		if (other->compute.forward + other->compute.backward > load->compute.forward + load->compute.backward)
			load = other;
	}
	return load;
}

/* Sets how long the passes of micro-batch j take on a lane, with slow[stage] where it is not NULL. */
static void fill_lane(struct wlb_sim *sim, const struct wlb_sim_load *load, int32_t j, int32_t lane, const double *slow)
{
	const struct wlb_plan *plan = &sim->options.plan;
	struct wlb_sim_pipeline *p = &sim->pipeline;
	size_t pp = (size_t)plan->layout.pp, m = (size_t)plan->micro_batches, lanes = (size_t)p->lanes;
	for (int32_t s = 0; s < plan->layout.pp; s++)
		for (int32_t c = 0; c < plan->interleave; c++) {
			size_t entry = ((size_t)c * pp + (size_t)s) * m + (size_t)j, at = entry * lanes + (size_t)lane;
			struct wlb_sim_chunk took =
				wlb_sim_time_passes(sim, load, s, c, slow != NULL ? slow[s] : 1.0, NULL, 0.0);
			p->forward_s[at] = took.forward_s;
			p->backward_s[at] = took.backward_s;
			p->head_s[(size_t)s * m + (size_t)j] = took.head_s; /* of the last chunk */
		}
}

/* Sets how long the passes of micro-batch j take where its lanes differ: those that begin together take equally long.
 */
static void fill_lanes(struct wlb_sim *sim, int32_t j, const double *slow)
{
	struct wlb_sim_pipeline *p = &sim->pipeline;
	size_t m = (size_t)p->plan.micro_batches, lanes = (size_t)p->lanes;
	const int32_t *first = p->first_lane + (size_t)j * lanes;
	for (int32_t lane = 0; lane < p->lanes; lane++) {
		if (first[lane] == lane) {
			struct wlb_sim_load load = wlb_sim_lane_load(sim, j, lane);
			fill_lane(sim, &load, j, lane, slow);
			continue;
		}
		for (size_t at = (size_t)j * lanes; at < wlb_sim_pipeline_passes(&p->plan) * lanes; at += m * lanes) {
			p->forward_s[at + (size_t)lane] = p->forward_s[at + (size_t)first[lane]];
			p->backward_s[at + (size_t)lane] = p->backward_s[at + (size_t)first[lane]];
		}
	}
}

static void fill_pipeline(struct wlb_sim *sim, int32_t replica, int with_slowdown)
{
	const struct wlb_plan *plan = &sim->options.plan;
	struct wlb_sim_pipeline *p = &sim->pipeline;
	int32_t pp = plan->layout.pp, m = plan->micro_batches;
	const double *slow = with_slowdown ? sim->slow + (size_t)replica * (size_t)pp : NULL;
	p->lanes = plan->dynamic_cp > 0 ? sim->ranks : 1;
	for (int32_t j = 0; j < m; j++) {
		const struct wlb_sim_load *load = load_of(sim, replica, j);
		for (int32_t s = 0; s < pp; s++) {
			double share = load->send_bytes / pp;
			p->send_s[(size_t)s * m + j] = pp > 1 ? wlb_sim_send_s(sim, replica, s, load->send_bytes) : 0.0;
			p->head_send_s[(size_t)s * m + j] =
				plan->shared_head ? wlb_sim_send_s(sim, replica, s, share) : 0.0;
		}
		if (p->lanes > 1)
			fill_lanes(sim, j, slow);
		else
			fill_lane(sim, load, j, 0, slow);
	}
}

/* Returns the second at which the gradients of all stages are reduced. Chunks are reduced one after another, each as
 * its last backward pass goes through its layers, the last layer's share at the earliest when the pass ends. */
static double reduced_s(const struct wlb_sim *sim, double pipelines_end_s)
{
	const struct wlb_plan *plan = &sim->options.plan;
	double all_s = pipelines_end_s;
	for (int32_t s = 0; s < plan->layout.pp && !wlb_sim_shards_each_pass(sim); s++) {
		double at_s = sim->options.cost.overlap_gradients ? 0.0 : pipelines_end_s;
		if (wlb_sim_hides_update(sim)) {
			all_s = fmax(all_s, wlb_sim_buckets_reduced_s(sim, s));
			continue;
		}
		for (int32_t c = plan->interleave - 1; c >= 0; c--) {
			double takes_s = wlb_sim_reduce_s(sim, s, c);
			double layers = (double)wlb_plan_layers(plan, &sim->model, s, c);
			size_t q = (size_t)c * plan->layout.pp + s;
			at_s = fmax(at_s, sim->chunk_start_s[q]) + takes_s;
			at_s = fmax(at_s, sim->chunk_end_s[q] + takes_s / fmax(layers, 1.0));
		}
		all_s = fmax(all_s, at_s);
	}
	return all_s;
}

struct run {
	double pipelines_end_s; /* of the replica that ends last */
	double reduced_s;
	struct wlb_sim_bucket_waits waits; /* with wlb_sim_hides_update */
	int32_t worst_replica;
};

static struct run run_replicas(struct wlb_sim *sim, int with_slowdown)
{
	const struct wlb_plan *plan = &sim->options.plan;
	size_t chunks = (size_t)plan->layout.pp * plan->interleave, events = wlb_sim_pipeline_events(plan);
	struct run run = {.pipelines_end_s = -1.0};
	memset(sim->chunk_start_s, 0, chunks * sizeof(*sim->chunk_start_s));
	memset(sim->chunk_end_s, 0, chunks * sizeof(*sim->chunk_end_s));
	for (int32_t r = 0; r < sim->replicas; r++) {
		fill_pipeline(sim, r, with_slowdown);
		sim->pipeline.events = sim->options.timeline ? sim->events + events * (size_t)r : NULL;
		double end_s = wlb_sim_pipeline_run(&sim->pipeline);
		for (size_t i = 0; sim->options.timeline && i < events; i++) {
			struct wlb_sim_event *event = &sim->pipeline.events[i];
			event->replica = r;
			event->micro_batch = event->micro_batch * sim->replicas + r;
		}
		for (size_t q = 0; q < chunks; q++) {
			sim->chunk_start_s[q] = fmax(sim->chunk_start_s[q], sim->pipeline.last_start_s[q]);
			sim->chunk_end_s[q] = fmax(sim->chunk_end_s[q], sim->pipeline.last_end_s[q]);
		}
		if (end_s > run.pipelines_end_s) {
			run.pipelines_end_s = end_s;
			run.worst_replica = r;
		}
	}
	run.reduced_s = reduced_s(sim, run.pipelines_end_s) + wlb_sim_sum_heads_s(sim);
	if (wlb_sim_hides_update(sim))
		run.waits = wlb_sim_bucket_waits(sim);
	return run;
}

/* Runs a pipeline of equal passes with this total work, where each send takes send_s; returns its seconds. */
static double equal_pipeline_s(struct wlb_sim *sim, double forward_s, double backward_s, double send_s)
{
	const struct wlb_plan *plan = &sim->options.plan;
	struct wlb_sim_pipeline *p = &sim->pipeline;
	size_t passes = wlb_sim_pipeline_passes(plan);
	p->lanes = 1;
	for (size_t i = 0; i < passes; i++) {
		p->forward_s[i] = forward_s / (double)passes;
		p->backward_s[i] = backward_s / (double)passes;
	}
	for (size_t i = 0; i < (size_t)plan->layout.pp * plan->micro_batches; i++) {
		p->send_s[i] = send_s;
		p->head_s[i] = p->head_send_s[i] = 0.0;
	}
	p->events = NULL;
	return wlb_sim_pipeline_run(p);
}

/* Sums over the micro-batches of a mean replica, all stages. */
struct sums {
	double forward_s, backward_s; /* of all passes, without zero_s */
	double zero_s;                /* a mean GPU's wait for the communication of ZeRO-2 and 3 */
	double send_s;                /* mean over micro-batches and boundaries */
};

/* Adds the passes of one micro-batch, and their parts for a mean GPU. */
static void add_passes(const struct wlb_sim *sim, const struct wlb_sim_load *load, struct wlb_sim_time *time,
                       struct sums *sums)
{
	const struct wlb_plan *plan = &sim->options.plan;
	double replicas = (double)sim->replicas;
	for (int32_t s = 0; s < plan->layout.pp; s++)
		for (int32_t c = 0; c < plan->interleave; c++) {
			/* pp x replicas GPUs share this work, of one tp and cp place. */
			struct wlb_sim_chunk took =
				wlb_sim_time_passes(sim, load, s, c, 1.0, time, 1.0 / (replicas * plan->layout.pp));
			sums->forward_s += took.forward_s / replicas;
			sums->backward_s += (took.backward_s - took.zero_s) / replicas; /* all of zero_s, for the sum */
			if (s < plan->layout.pp - 1)
				sums->backward_s += took.head_s / replicas;
			sums->zero_s += took.zero_s / (replicas * plan->layout.pp);
		}
}

static struct sums sum_loads(struct wlb_sim *sim, struct wlb_sim_time *time, struct wlb_sim_result *result)
{
	const struct wlb_plan *plan = &sim->options.plan;
	struct sums sums = {0};
	int32_t count = plan->micro_batches * sim->replicas;
	for (int32_t i = 0; i < count; i++) {
		const struct wlb_sim_load *load = &sim->loads[i];
		add_passes(sim, load, time, &sums);
		for (int32_t s = 0; plan->layout.pp > 1 && s < plan->layout.pp; s++)
			sums.send_s += wlb_sim_send_s(sim, 0, s, load->send_bytes) / plan->layout.pp / count;
		result->tokens += load->tokens;
		result->per_document += load->per_document;
		result->flops += 3.0 * load->flops;
	}
	return sums;
}

/* Returns the seconds that the stage that waits longest spends on gathering the weights that the optimizer has changed,
 * beside the first micro-batch's forward passes where they overlap. ZeRO-3 gathers weights when they are used, and so
 * does ZeRO-1 with shards_each_pass. */
static double gather_s(const struct wlb_sim *sim)
{
	const struct wlb_plan *plan = &sim->options.plan;
	double most_s = 0.0;
	if (plan->zero_stage == 0 || (plan->zero_stage != 2 && wlb_sim_shards_each_pass(sim)))
		return 0.0;
	for (int32_t s = 0; s < plan->layout.pp; s++) {
		double weights_s = 0.0, forward_s = 0.0, layers = 0.0;
		for (int32_t c = 0; c < plan->interleave; c++) {
			weights_s += wlb_sim_gather_weights_s(sim, s, c);
			forward_s += wlb_sim_time_passes(sim, &sim->loads[0], s, c, 1.0, NULL, 0.0).forward_s;
			layers += (double)wlb_plan_layers(plan, &sim->model, s, c);
		}
		if (sim->options.cost.overlap_parameters)
			weights_s = wlb_sim_exposed_s(weights_s, forward_s, fmax(layers, 1.0));
		most_s = fmax(most_s, weights_s);
	}
	return most_s;
}

/* Divides idle_s, the time that a mean GPU is idle in the pipelines, among its causes. A pipeline of equal passes would
 * be idle for equal_s, and for sending_s more because of its sends. The passes may be idle for less: the first
 * or last stage has more work than the mean one, and fills the time in which the others begin and end. */
static void divide_idle(struct wlb_sim_time *time, double idle_s, double equal_s, double sending_s)
{
	idle_s = fmax(0.0, idle_s);
	time->bubble_s = fmin(fmax(0.0, equal_s), idle_s);
	time->pp_s = fmin(fmax(0.0, sending_s), idle_s - time->bubble_s);
	time->imbalance_s = idle_s - time->bubble_s - time->pp_s;
}

/* Sets what the communication of replicas adds to the step, of which weights_s are of weights, where the pipelines have
 * run so. Without replicas wlb-worker waits for the update alone. Where a mean GPU waits for less of it, since others
 * still compute or do not yet, it waits for these. */
static void set_replicas(const struct wlb_sim *sim, const struct run *run, double zero_s, double weights_s,
                         struct wlb_sim_time *time)
{
	const struct wlb_layout *l = &sim->options.plan.layout;
	double added_s = run->reduced_s - run->pipelines_end_s + weights_s;
	double waited_s = wlb_sim_hides_update(sim) ? fmin(added_s, run->waits.mean_s) : added_s;
	time->optimizer_s = wlb_sim_optimizer_s(sim);
	time->dp_s = zero_s;
	if (wlb_sim_hides_update(sim) && l->dp * l->cp == 1)
		time->optimizer_s += waited_s;
	else
		time->dp_s += waited_s;
	time->bubble_s += added_s - waited_s;
}

int wlb_sim_step(struct wlb_sim *sim, const struct wlb_step *step, struct wlb_sim_result *result,
                 struct wlb_error *error)
{
	const struct wlb_layout *l = &sim->options.plan.layout;
	*result = (struct wlb_sim_result){0};
	if (load_step(sim, step, error) < 0)
		return -1;
	struct wlb_sim_time *time = &result->time;
	struct sums sums = sum_loads(sim, time, result);
	double busy_s =
		time->compute_s + time->recompute_s + time->cp_imbalance_s + time->tp_s + time->cp_s + time->ep_s;
	double equal_s = equal_pipeline_s(sim, sums.forward_s, sums.backward_s, 0.0);
	double sending_s = equal_pipeline_s(sim, sums.forward_s, sums.backward_s, sums.send_s) - equal_s;
	struct run even = run_replicas(sim, 0), run = even;
	if (sim->options.slowdown != NULL)
		run = run_replicas(sim, 1);
	divide_idle(time, even.pipelines_end_s - sums.zero_s - busy_s, equal_s - busy_s, sending_s);
	double weights_s = wlb_sim_hides_update(sim) ? even.waits.update_s : gather_s(sim);
	set_replicas(sim, &even, sums.zero_s, weights_s, time);
	time->straggler_s = run.reduced_s - even.reduced_s;
	time->step_s = run.reduced_s + weights_s + wlb_sim_optimizer_s(sim);
	double scale = (double)l->dp * l->cp / ((double)sim->replicas * sim->ranks);
	result->worst_replica = run.worst_replica;
	result->flops *= scale;
	result->tokens_per_s = (double)result->tokens * scale / time->step_s;
	result->utilization = result->flops / (time->step_s * wlb_layout_ranks(l) * sim->machine.peak_flops);
	return 0;
}
