/*
 * What nothing hides of wlb-worker's reductions of gradients and of its update of weights, where messages need no
 * processor: bucket by bucket, in the order of worker/model/buckets.c, worker/optimizer/reduce.c and optimizer.c.
 *
 * A bucket is the head, the matrices of so many layers, all norms, or the embedding. The reduction of each begins when
 * the last backward pass has its gradients, and behind the one before. A queue of its own updates the buckets in the
 * opposite order, and each is gathered behind its update, beside the update of the next and the next step's forward
 * pass, which awaits a bucket where it reads its weights.
 */
#include "libwlb/cost/plan_sizes.h"
#include "libwlb/simulation/sim_state.h"

#include <math.h>

/* Of a chunk: elements of its buckets on a rank, and the layers of one of matrices; the last of these may have fewer.
 */
struct buckets {
	double embedding, layer, head; /* 0: the chunk has none */
	double layers, together;
};

static struct buckets buckets_of(const struct wlb_sim *sim, int32_t stage, int32_t chunk)
{
	const struct wlb_plan *plan = &sim->options.plan;
	const struct wlb_model *m = &sim->model;
	int is_last = chunk == plan->interleave - 1 && (plan->shared_head || stage == plan->layout.pp - 1);
	int is_first = chunk == 0 && stage == 0, is_tied = m->tie_word_embeddings && is_first;
	double table = (double)m->vocab_size * (double)m->hidden_size / plan->layout.tp;
	struct buckets b = {.embedding = is_first ? table : 0.0, .head = is_last && !is_tied ? table : 0.0};
	b.layers = (double)wlb_plan_layers(plan, m, stage, chunk);
	if (b.layers > 0.0) {
		b.layer = wlb_plan_chunk_matrices(plan, m, stage, chunk) / b.layers;
		b.together = ceil(WLB_BUCKET_ELEMENTS / b.layer);
	}
	return b;
}

static int replicas(const struct wlb_sim *sim)
{
	return sim->options.plan.layout.dp * sim->options.plan.layout.cp;
}

static double reduce_s(const struct wlb_sim *sim, double elements)
{
	return wlb_machine_reduce_s(&sim->machine, replicas(sim), sim->dp_on_node, sim->dp_crosses,
	                            elements * sim->options.cost.gradient_bytes);
}

/* Norms have next to no elements: their bucket takes the time of a call. */
static const double norms_elements = 0.0;

/* Returns when the buckets of a chunk are reduced, where those before are at at_s. */
static double chunk_reduced_s(const struct wlb_sim *sim, int32_t stage, int32_t chunk, double at_s)
{
	const struct wlb_plan *plan = &sim->options.plan;
	const struct wlb_sim_load *l = &sim->loads[(size_t)(plan->micro_batches - 1) * sim->replicas];
	const struct buckets b = buckets_of(sim, stage, chunk);
	size_t q = (size_t)chunk * plan->layout.pp + stage;
	double begin_s = sim->chunk_start_s[q], end_s = sim->chunk_end_s[q];
	if (b.embedding > 0.0)
		end_s -= l->embedding.backward + l->embedding_tp.backward;
	if (b.head > 0.0) {
		if (!plan->shared_head)
			begin_s += l->head.backward + l->head_tp.backward;
		at_s = fmax(at_s, begin_s) + reduce_s(sim, b.head);
	}
	for (double done = 0.0; done < b.layers; done += b.together) {
		double count = fmin(b.together, b.layers - done);
		double complete_s = begin_s + (end_s - begin_s) * (done + count) / b.layers;
		at_s = fmax(at_s, complete_s) + reduce_s(sim, count * b.layer);
	}
	if (chunk == 0)
		at_s = fmax(at_s, end_s) + reduce_s(sim, norms_elements);
	if (b.embedding > 0.0)
		at_s = fmax(at_s, sim->chunk_end_s[q]) + reduce_s(sim, b.embedding);
	return at_s;
}

double wlb_sim_buckets_reduced_s(const struct wlb_sim *sim, int32_t stage)
{
	double at_s = 0.0;
	for (int32_t c = sim->options.plan.interleave - 1; c >= 0; c--)
		at_s = chunk_reduced_s(sim, stage, c, at_s);
	return at_s;
}

/* Seconds since the update began: until the queue of updates is through, the last gather has ended, and the forward
 * pass has come to the next bucket, and how long it waited. */
struct update {
	double updated_s, gathered_s, forward_s, waited_s;
};

/* Updates and gathers a bucket, which what takes needed_s reads. */
static void pass_bucket(const struct wlb_sim *sim, struct update *u, double elements, double needed_s)
{
	double part = elements / replicas(sim);
	u->updated_s += wlb_slowest_rank(&sim->cost) *
	                (wlb_optimizer_s(&sim->cost, part, part) - wlb_optimizer_norm_s(&sim->cost, part));
	u->gathered_s = fmax(u->gathered_s, u->updated_s) +
	                wlb_machine_gather_s(&sim->machine, replicas(sim), sim->dp_on_node, sim->dp_crosses,
	                                     elements * wlb_machine_element_bytes(&sim->machine));
	u->waited_s += fmax(0.0, u->gathered_s - u->forward_s);
	u->forward_s = fmax(u->forward_s, u->gathered_s) + needed_s;
}

/* Returns how long a stage's first forward pass, which comes begins_s after the first stage's, waits for its weights.
 */
static double update_waits_s(const struct wlb_sim *sim, int32_t stage, double begins_s)
{
	const struct wlb_plan *plan = &sim->options.plan;
	const struct wlb_sim_load *l = &sim->loads[0];
	double layer_s = l->compute.forward + l->tp.forward + l->cp.forward;
	struct update u = {.forward_s = begins_s};
	for (int32_t c = 0; c < plan->interleave; c++) {
		const struct buckets b = buckets_of(sim, stage, c);
		if (b.embedding > 0.0)
			pass_bucket(sim, &u, b.embedding, l->embedding.forward + l->embedding_tp.forward);
		if (c == 0)
			pass_bucket(sim, &u, norms_elements, 0.0);
		/* The bucket with fewer layers is that of the first ones. */
		double first = b.layers > 0.0 ? b.layers - b.together * (ceil(b.layers / b.together) - 1.0) : 0.0;
		for (double done = 0.0, count = first; done < b.layers; done += count, count = b.together)
			pass_bucket(sim, &u, count * b.layer, count * layer_s);
		if (b.head > 0.0)
			pass_bucket(sim, &u, b.head, 0.0);
	}
	return u.waited_s;
}

struct wlb_sim_bucket_waits wlb_sim_bucket_waits(const struct wlb_sim *sim)
{
	int32_t pp = sim->options.plan.layout.pp;
	struct wlb_sim_bucket_waits waits = {0};
	double begins_s = 0.0;
	for (int32_t s = 0; s < pp; s++) {
		double update_s = update_waits_s(sim, s, begins_s);
		waits.update_s = fmax(waits.update_s, update_s);
		waits.mean_s += update_s / pp;
		/* Of a stage the first chunk ends last, and its gradient has been sent before reductions are awaited.
		 */
		double sent_s = sim->chunk_end_s[s];
		if (s > 0)
			sent_s += wlb_sim_send_s(sim, 0, s - 1, sim->loads[0].send_bytes);
		if (!wlb_sim_shards_each_pass(sim))
			waits.mean_s += fmax(0.0, wlb_sim_buckets_reduced_s(sim, s) - sent_s) / pp;
		begins_s += wlb_sim_time_passes(sim, &sim->loads[0], s, 0, 1.0, NULL, 0.0).forward_s;
	}
	return waits;
}
