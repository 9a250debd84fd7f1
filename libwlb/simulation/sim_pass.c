/* Computes the times of a pass, of its sends, and of the communication between replicas. */
#include "libwlb/cost/plan_sizes.h"
#include "libwlb/simulation/sim_state.h"

#include <math.h>

/* Tensors of a layer: matrices of queries, keys and values and of attention's output, each with a bias, three of the
 * MLP and two norms. */
static const double layer_tensors = 9.0;

/* Bytes of the gradients or the weights of a chunk on a rank. */
struct chunk_bytes {
	double all, experts; /* `experts` of them are of experts, where ep is above 1 */
};

/* wlb_machine_reduce_s, wlb_machine_gather_s or wlb_machine_root_s. */
typedef double collective(const struct wlb_machine *machine, int ranks, int ranks_per_node, int crosses_switch,
                          double bytes);

/* Returns the seconds of a collective among the ranks that hold the same parameters, of which there are fewer for
 * experts where ep is above 1. */
static double chunk_s(const struct wlb_sim *sim, struct chunk_bytes bytes, collective *of)
{
	const struct wlb_plan *plan = &sim->options.plan;
	int ranks = plan->layout.dp * plan->layout.cp;
	double seconds = of(&sim->machine, ranks, sim->dp_on_node, sim->dp_crosses, bytes.all - bytes.experts);
	if (bytes.experts > 0.0)
		seconds += of(&sim->machine, ranks / wlb_plan_expert_ranks(plan), sim->expert_replicas_on_node,
		              sim->dp_crosses, bytes.experts);
	return seconds;
}

/* Returns the seconds in which the gradients or weights of a chunk go to their owners or come from them, with
 * owned_tensors: a collective for each tensor, or for each rank where there are fewer of these. */
static double owned_s(const struct wlb_sim *sim, int32_t stage, int32_t chunk, struct chunk_bytes bytes)
{
	const struct wlb_layout *l = &sim->options.plan.layout;
	double tensors = layer_tensors * (double)wlb_plan_layers(&sim->options.plan, &sim->model, stage, chunk);
	double calls = fmin((double)l->dp * l->cp, fmax(1.0, tensors));
	const struct chunk_bytes call = {bytes.all / calls, bytes.experts / calls};
	return calls * chunk_s(sim, call, wlb_machine_root_s);
}

static int owns_tensors(const struct wlb_sim *sim)
{
	return sim->options.plan.zero_stage == 1 && sim->options.cost.owned_tensors;
}

double wlb_sim_reduce_s(const struct wlb_sim *sim, int32_t stage, int32_t chunk)
{
	const struct wlb_plan *plan = &sim->options.plan;
	double element = sim->options.cost.gradient_bytes;
	const struct chunk_bytes bytes = {element * wlb_plan_chunk_parameters(plan, &sim->model, stage, chunk),
	                                  element * wlb_plan_chunk_experts(plan, &sim->model, stage, chunk)};
	if (owns_tensors(sim))
		return owned_s(sim, stage, chunk, bytes);
	double scatter_s = chunk_s(sim, bytes, wlb_machine_reduce_s);
	/* An all-reduce gathers what it has scattered; with ZeRO each rank keeps its part. */
	return plan->zero_stage > 0 ? scatter_s : scatter_s + chunk_s(sim, bytes, wlb_machine_gather_s);
}

double wlb_sim_sum_heads_s(const struct wlb_sim *sim)
{
	const struct wlb_plan *plan = &sim->options.plan;
	const struct wlb_layout *l = &plan->layout;
	if (!plan->shared_head)
		return 0.0;
	double shards = plan->zero_stage > 0 ? (double)l->dp * l->cp : 1.0;
	double bytes = sim->options.cost.gradient_bytes * (double)sim->model.vocab_size *
	               (double)sim->model.hidden_size / (l->tp * shards);
	return wlb_machine_reduce_s(&sim->machine, l->pp, sim->pp_on_node, sim->pp_crosses, bytes) +
	       wlb_machine_gather_s(&sim->machine, l->pp, sim->pp_on_node, sim->pp_crosses, bytes);
}

/* Returns the weights of a chunk that are gathered. Megatron-LM gathers those of MXFP8 in the type of the activations,
 * in the buffer of the gradients (--reuse-grad-buf-for-mxfp8-param-ag). */
static struct chunk_bytes gathered_bytes(const struct wlb_sim *sim, int32_t stage, int32_t chunk)
{
	const struct wlb_plan *plan = &sim->options.plan;
	const struct wlb_cost_options *cost = &sim->options.cost;
	double element = wlb_machine_element_bytes(&sim->machine);
	double all = wlb_plan_chunk_parameters(plan, &sim->model, stage, chunk);
	double experts = wlb_plan_chunk_experts(plan, &sim->model, stage, chunk);
	if (!cost->fp8_parameters || cost->fp8 == WLB_FP8_NONE || cost->fp8 == WLB_FP8_MXFP8)
		return (struct chunk_bytes){element * all, element * experts};
	double matrices = wlb_plan_chunk_matrices(plan, &sim->model, stage, chunk);
	return (struct chunk_bytes){element * all - (element - 1.0) * matrices, experts};
}

double wlb_sim_gather_weights_s(const struct wlb_sim *sim, int32_t stage, int32_t chunk)
{
	const struct chunk_bytes bytes = gathered_bytes(sim, stage, chunk);
	if (owns_tensors(sim))
		return owned_s(sim, stage, chunk, bytes);
	return chunk_s(sim, bytes, wlb_machine_gather_s);
}

int wlb_sim_hides_update(const struct wlb_sim *sim)
{
	return sim->options.cost.trainer == WLB_COST_WORKER && sim->options.cost.overlap_parameters;
}

double wlb_sim_optimizer_s(const struct wlb_sim *sim)
{
	const struct wlb_plan *plan = &sim->options.plan;
	double updated = 0.0, held = 0.0;
	for (int32_t s = 0; s < plan->layout.pp; s++) {
		double all = 0.0, experts = 0.0;
		for (int32_t c = 0; c < plan->interleave; c++) {
			all += wlb_plan_chunk_parameters(plan, &sim->model, s, c);
			experts += wlb_plan_chunk_experts(plan, &sim->model, s, c);
		}
		double shard = wlb_plan_shard(plan, all, experts);
		updated = fmax(updated, plan->zero_stage >= 1 ? shard : all);
		held = fmax(held, plan->zero_stage >= 2 ? shard : all);
	}
	return wlb_slowest_rank(&sim->cost) * (wlb_sim_hides_update(sim) ? wlb_optimizer_norm_s(&sim->cost, updated)
	                                                                 : wlb_optimizer_s(&sim->cost, updated, held));
}

double wlb_sim_exposed_s(double communication_s, double computation_s, double pieces)
{
	return fmax(communication_s / pieces, communication_s - computation_s);
}

void wlb_sim_set_layers(struct wlb_sim *sim)
{
	const struct wlb_plan *plan = &sim->options.plan;
	const struct wlb_cost_options *cost = &sim->options.cost;
	int full = plan->recompute == WLB_RECOMPUTE_FULL, moe = (plan->recompute & WLB_RECOMPUTE_MOE) != 0;
	double ways = full && cost->early_stop && cost->weighted_experts ? 0.5 : 1.0; /* of there and back */
	for (int32_t c = 0; c < plan->interleave; c++)
		for (int32_t s = 0; s < plan->layout.pp; s++) {
			double all = (double)wlb_plan_layers(plan, &sim->model, s, c);
			double recomputed = wlb_plan_recomputed_layers(plan, &sim->model, s, c);
			sim->layers[(size_t)c * plan->layout.pp + s] = (struct wlb_sim_layers){
				all, recomputed, full ? all - recomputed : 0.0, full || moe ? ways * recomputed : 0.0};
		}
}

static void add_parts(struct wlb_sim_time *time, const struct wlb_sim_load *l, const struct wlb_sim_layers *layers,
                      int first, int has_head, double share)
{
	double ends_s = layers->all > 0.0 ? 2.0 * l->angles_s : 0.0;
	double ends_tp_s = layers->all > 0.0 ? l->ends_tp.forward + l->ends_tp.backward : 0.0;
	if (first) {
		ends_s += l->embedding.forward + l->embedding.backward;
		ends_tp_s += l->embedding_tp.forward + l->embedding_tp.backward;
	}
	if (has_head) {
		ends_s += l->head.forward + l->head.backward;
		ends_tp_s += l->head_tp.forward + l->head_tp.backward;
	}
	double slowest_s = l->compute.forward + l->compute.backward, mean_s = l->mean.forward + l->mean.backward;
	time->compute_s += share * (layers->all * mean_s + ends_s);
	time->recompute_s += share * (layers->recomputed * l->recompute_mean_s + layers->beyond * l->beyond_s);
	time->cp_imbalance_s += share * (layers->all * (slowest_s - mean_s) +
	                                 layers->recomputed * (l->recompute_s - l->recompute_mean_s));
	time->tp_s += share * (layers->all * (l->tp.forward + l->tp.backward) + layers->recomputed * l->tp_recompute_s +
	                       ends_tp_s);
	time->ep_s += share * (layers->all * (l->ep.forward + l->ep.backward) + layers->again * l->ep.forward);
	time->cp_s += share * (layers->all * (l->cp.forward + l->cp.backward) + layers->recomputed * l->cp_recompute_s +
	                       layers->beyond * l->beyond_cp_s);
}

/* Returns the seconds that computation loses beside hidden communication of a rank's `bytes`: the kernels of a
 * collective occupy multiprocessors, as many as its share of node_link's speed takes. */
static double lost_s(const struct wlb_sim *sim, double bytes)
{
	const struct wlb_machine *machine = &sim->machine;
	if (machine->processors == 0)
		return 0.0;
	return bytes / machine->node_link.bytes_per_s * machine->collective_processors / machine->processors;
}

/* Returns the seconds that communication adds to computation: all of communication_s, or, where `overlap` is 1, what
 * the computation_s of `layers` layers does not hide, and the computation that it slows down. */
static double overlapped_s(const struct wlb_sim *sim, int overlap, double communication_s, double bytes,
                           double computation_s, double layers)
{
	if (!overlap)
		return communication_s;
	return wlb_sim_exposed_s(communication_s, computation_s, layers) + lost_s(sim, bytes);
}

/* Returns the seconds in which the gradients of a pass are copied: PyTorch's FSDP puts them into one buffer; wlb-worker
 * adds a rank's part of them to the sums where there are several micro-batches. */
static double copy_gradients_s(const struct wlb_sim *sim, double parameters)
{
	const struct wlb_plan *plan = &sim->options.plan;
	const struct wlb_cost_options *cost = &sim->options.cost;
	double memory = sim->machine.memory_bytes_per_s,
	       part = parameters / ((double)plan->layout.dp * plan->layout.cp);
	if (cost->trainer != WLB_COST_WORKER)
		return (wlb_machine_element_bytes(&sim->machine) + cost->gradient_bytes) * parameters / memory;
	return plan->micro_batches > 1 ? 3.0 * cost->gradient_bytes * part / memory : 0.0;
}

/* Returns of how many like pieces of the weights that a pass gathers the first is waited for: the first layer, or where
 * layers are a loop the first matrix of each, of queries, keys and values. */
static double gathered_pieces(const struct wlb_sim *sim, double layers)
{
	const struct wlb_model *m = &sim->model;
	double heads = (double)m->num_attention_heads + 2.0 * (double)m->num_key_value_heads;
	if (!sim->options.cost.looped_layers)
		return layers;
	return (double)wlb_model_layer_matrix_parameters(m) / ((double)(m->hidden_size * m->head_dim) * heads);
}

int wlb_sim_shards_each_pass(const struct wlb_sim *sim)
{
	int zero_stage = sim->options.plan.zero_stage;
	return zero_stage >= 2 || (zero_stage == 1 && sim->options.cost.shards_each_pass);
}

/* ZeRO-3 gathers the weights of each layer before it is used, forward and backward, ZeRO-1 with shards_each_pass
 * forward alone; all that is here reduces gradients in every micro-batch. PyTorch's FSDP copies what it has gathered
 * into the parameters. */
static void add_zero_communication(const struct wlb_sim *sim, int32_t stage, int32_t chunk, double layers,
                                   struct wlb_sim_chunk *took)
{
	const struct wlb_plan *plan = &sim->options.plan;
	const struct wlb_cost_options *cost = &sim->options.cost;
	double parameters = wlb_plan_chunk_parameters(plan, &sim->model, stage, chunk);
	double memory = sim->machine.memory_bytes_per_s;
	double before_s = 0.0, after_s = 0.0, bytes = gathered_bytes(sim, stage, chunk).all;
	double weights_s = wlb_sim_gather_weights_s(sim, stage, chunk), copy_s = 2.0 * bytes / memory;
	double pieces = gathered_pieces(sim, layers), again = plan->recompute == WLB_RECOMPUTE_FULL ? pieces : layers;
	if (plan->zero_stage != 2)
		before_s =
			copy_s + overlapped_s(sim, cost->overlap_parameters, weights_s, bytes, took->forward_s, pieces);
	if (plan->zero_stage == 3)
		after_s =
			copy_s + overlapped_s(sim, cost->overlap_parameters, weights_s, bytes, took->backward_s, again);
	/* The computation that is left to hide the reduction of gradients after the gathering of weights. */
	double left_s = fmax(0.0, took->backward_s - (plan->zero_stage == 3 ? weights_s : 0.0));
	after_s += copy_gradients_s(sim, parameters) + overlapped_s(sim, cost->overlap_gradients,
	                                                            wlb_sim_reduce_s(sim, stage, chunk),
	                                                            cost->gradient_bytes * parameters, left_s, layers);
	took->forward_s += before_s;
	took->backward_s += after_s;
	took->zero_s = before_s + after_s;
}

struct wlb_sim_chunk wlb_sim_time_passes(const struct wlb_sim *sim, const struct wlb_sim_load *load, int32_t stage,
                                         int32_t chunk, double slow, struct wlb_sim_time *time, double share)
{
	const struct wlb_plan *plan = &sim->options.plan;
	const struct wlb_sim_load *l = load;
	const struct wlb_sim_layers layers = sim->layers[(size_t)chunk * plan->layout.pp + stage];
	int first = stage == 0 && chunk == 0;
	int last = stage == plan->layout.pp - 1 && chunk == plan->interleave - 1;
	struct wlb_sim_chunk took = {
		.forward_s = layers.all * (slow * l->compute.forward + l->tp.forward + l->cp.forward + l->ep.forward),
		.backward_s =
			layers.all * (slow * l->compute.backward + l->tp.backward + l->cp.backward + l->ep.backward) +
			layers.recomputed * (slow * l->recompute_s + l->tp_recompute_s + l->cp_recompute_s) +
			layers.beyond * (slow * l->beyond_s + l->beyond_cp_s) + layers.again * l->ep.forward,
	};
	if (layers.all > 0.0) {
		took.forward_s += slow * l->angles_s + l->ends_tp.forward;
		took.backward_s += slow * l->angles_s + l->ends_tp.backward;
	}
	if (first) {
		took.forward_s += slow * l->embedding.forward + l->embedding_tp.forward;
		took.backward_s += slow * l->embedding.backward + l->embedding_tp.backward;
	}
	if (plan->shared_head && chunk == plan->interleave - 1)
		took.head_s = slow * (l->head.forward + l->head.backward) + l->head_tp.forward + l->head_tp.backward;
	if (last && plan->shared_head) {
		took.backward_s += took.head_s;
	} else if (last) {
		took.forward_s += slow * l->head.forward + l->head_tp.forward;
		took.backward_s += slow * l->head.backward + l->head_tp.backward;
	}
	if (time != NULL)
		add_parts(time, l, &layers, first, last || took.head_s > 0.0, share);
	if (wlb_sim_shards_each_pass(sim))
		add_zero_communication(sim, stage, chunk, fmax(layers.all, 1.0), &took);
	return took;
}

double wlb_sim_send_s(const struct wlb_sim *sim, int32_t replica, int32_t stage, double bytes)
{
	const struct wlb_layout *l = &sim->options.plan.layout;
	int group = l->tp * l->cp, outermost = sim->options.cost.pp_outermost, gpus = sim->machine.gpus_per_node;
	int apart = outermost ? l->dp * group : group, base = outermost ? replica * group : replica * l->pp * group;
	int from = base + stage * apart, to = base + (stage + 1) % l->pp * apart;
	int linked = wlb_machine_linked_gpus(&sim->machine);
	if (from / linked == to / linked)
		return wlb_machine_node_send_s(&sim->machine, bytes);
	const int32_t *leaf = sim->options.leaf;
	int leaves = leaf != NULL && leaf[from / gpus] != leaf[to / gpus];
	const struct wlb_link link = wlb_machine_network(&sim->machine, leaves);
	return link.latency_s + bytes / link.bytes_per_s;
}
