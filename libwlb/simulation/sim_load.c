/* Computes the load of a micro-batch: the seconds of one layer, from its documents. */
#include "libwlb/cost/halves.h"
#include "libwlb/cost/plan_sizes.h"
#include "libwlb/pairs.h"
#include "libwlb/simulation/sim_state.h"

#include <math.h>
#include <string.h>

/* Adds each rank's attention where 2 x cp equal chunks of each window are paired. */
static void shard_sequence(struct wlb_sim *sim, size_t count, double tokens)
{
	int32_t cp = sim->options.plan.layout.cp;
	int64_t chunks = 2 * (int64_t)cp * sim->options.windows, chunk = 0;
	double begin = 0.0;
	memset(sim->rank_s, 0, (size_t)cp * sizeof(*sim->rank_s));
	for (size_t i = 0; i < count; i++) {
		double start = begin, end = begin + (double)sim->tokens[i];
		while (begin < end) {
			double limit =
				chunk == chunks - 1 ? tokens : floor(tokens * (double)(chunk + 1) / (double)chunks);
			double to = limit < end ? limit : end;
			int32_t place = (int32_t)(chunk % (2 * (int64_t)cp)),
				rank = place < cp ? place : 2 * cp - 1 - place;
			if (to > begin)
				wlb_sim_add(&sim->rank_s[rank], wlb_sim_attention_s(sim, begin - start, to - start));
			begin = to;
			if (to == limit && chunk < chunks - 1)
				chunk++;
		}
	}
}

static struct wlb_seconds shard_documents_s(const struct wlb_sim *sim, size_t count)
{
	struct wlb_seconds sum = {0};
	for (size_t i = 0; i < count; i++)
		if (sim->tokens[i] > 0)
			wlb_sim_add(&sum, wlb_sim_attention_share_s(sim, (double)sim->tokens[i],
			                                            sim->options.plan.layout.cp));
	return sum;
}

/* Attention of the slowest rank and of the mean one where every rank has the same tokens. */
struct sharded {
	struct wlb_seconds slowest, mean;
	int32_t per_document;
};

static struct sharded choose_sharding(struct wlb_sim *sim, size_t count, double tokens)
{
	int32_t cp = sim->options.plan.layout.cp;
	struct wlb_seconds documents = shard_documents_s(sim, count);
	struct sharded by_document = {documents, documents, 1}, by_sequence = {0};
	if (cp == 1 || sim->options.sharding == WLB_SHARDING_DOCUMENT)
		return by_document;
	shard_sequence(sim, count, tokens);
	for (int32_t r = 0; r < cp; r++) {
		by_sequence.slowest.forward = fmax(by_sequence.slowest.forward, sim->rank_s[r].forward);
		by_sequence.slowest.backward = fmax(by_sequence.slowest.backward, sim->rank_s[r].backward);
		wlb_sim_add(&by_sequence.mean,
		            (struct wlb_seconds){sim->rank_s[r].forward / cp, sim->rank_s[r].backward / cp});
	}
	int documents_sooner = wlb_sim_both(documents) <= wlb_sim_both(by_sequence.slowest);
	return sim->options.sharding == WLB_SHARDING_ADAPTIVE && documents_sooner ? by_document : by_sequence;
}

/* The seconds of the two collectives of a group of ranks. */
struct collectives {
	double gather, reduce;
};

/* Returns those of the residual stream over the tensor-parallel ranks, whose gathered elements have so many bytes. */
static struct collectives tp_collectives_s(const struct wlb_sim *sim, double rank_tokens, double gathered_bytes)
{
	int tp = sim->options.plan.layout.tp;
	double elements = rank_tokens * (double)sim->model.hidden_size;
	return (struct collectives){
		wlb_machine_gather_s(&sim->machine, tp, sim->tp_on_node, sim->tp_crosses, elements * gathered_bytes),
		wlb_machine_reduce_s(&sim->machine, tp, sim->tp_on_node, sim->tp_crosses,
	                             elements * wlb_machine_element_bytes(&sim->machine)),
	};
}

/* Returns the tokens of a rank of which a stage with the head computes it. */
static double head_tokens(const struct wlb_sim *sim, double rank_tokens)
{
	const struct wlb_plan *plan = &sim->options.plan;
	return plan->shared_head ? ceil(rank_tokens / plan->layout.pp) : rank_tokens;
}

/* Returns the part of communication_s that is not hidden, where `share` of it can run beside computation_s. */
static double exposed_s(double communication_s, double computation_s, double share)
{
	double hidden_s = fmin(share * communication_s, computation_s);
	return communication_s - hidden_s;
}

/* Returns the blocks of a layer that are MLPs which modules recompute as a whole, in the mean layer. */
static double blocks_again(const struct wlb_sim *sim, int all_have_mlp)
{
	double share = wlb_model_expert_layers_share(&sim->model), blocks = 0.0;
	unsigned modules = wlb_plan_modules(sim->options.plan.recompute, &sim->options.cost);
	if (modules & WLB_RECOMPUTE_MLP)
		blocks += 1.0 - share;
	if ((modules & (WLB_RECOMPUTE_MOE | WLB_RECOMPUTE_SHARED_EXPERTS)) && all_have_mlp)
		blocks += share;
	return blocks;
}

/* Sets the collectives over tensor-parallel ranks: of attention and MLP, beside products as far as the trainer does so.
 * Those of experts on other ranks are between products, and of each expert's row (Megatron-LM's dispatcher "alltoall"
 * gathers them after they arrived, keeps them for the backward pass, and scatters the sums before they are sent back):
 * none is cast before. */
static void add_tp(const struct wlb_sim *sim, struct wlb_sim_load *load, struct wlb_seconds products,
                   struct collectives tp, struct collectives of_expert)
{
	const struct wlb_cost_options *cost = &sim->options.cost;
	int apart = wlb_plan_expert_ranks(&sim->options.plan) > 1;
	/* A block is attention, an MLP that is no expert, or the expert that all rows have. */
	int all_have_mlp = !apart || sim->model.shared_intermediate_size > 0;
	double blocks = all_have_mlp ? 2.0 : 2.0 - wlb_model_expert_layers_share(&sim->model);
	double experts_s = apart ? wlb_plan_token_experts(&sim->model) * (of_expert.gather + of_expert.reduce) : 0.0;
	double gathers = cost->whole_rows ? 1.0 : 2.0;
	load->tp.forward =
		experts_s + exposed_s(blocks * (tp.gather + tp.reduce), products.forward, cost->tp_overlap.forward);
	load->tp.backward = experts_s + exposed_s(blocks * (gathers * tp.gather + tp.reduce), products.backward,
	                                          cost->tp_overlap.backward);
	/* What ends early does not scatter the sums of the last block. */
	if (sim->options.plan.recompute == WLB_RECOMPUTE_FULL) {
		load->tp_recompute_s =
			experts_s + exposed_s(blocks * tp.gather + (cost->early_stop ? 1.0 : blocks) * tp.reduce,
		                              products.forward, cost->tp_overlap.forward);
		return;
	}
	double again = blocks_again(sim, all_have_mlp);
	load->tp_recompute_s = exposed_s(again * (tp.gather + tp.reduce), products.forward, cost->tp_overlap.forward);
	if (sim->options.plan.recompute & WLB_RECOMPUTE_MOE)
		load->tp_recompute_s += experts_s;
}

/* Returns the seconds that an exchange of rows with experts adds to a pass of one direction. It runs beside that of
 * another micro-batch in the other direction, whose computation takes computation_s, but in the first forward passes
 * and the last backward passes, which have no other beside them: as many as the first stage has in flight (Megatron-LM,
 * core/pipeline_parallel/combined_1f1b.py). */
static double exchange_adds_s(const struct wlb_sim *sim, double exchange_s, double computation_s)
{
	const struct wlb_plan *plan = &sim->options.plan;
	if (!wlb_layer_hides_exchange(&sim->cost))
		return exchange_s;
	double alone = (double)wlb_plan_in_flight(plan, 0) / ((double)plan->micro_batches * plan->interleave);
	double beside_s = exposed_s(exchange_s, computation_s, 1.0) + wlb_layer_exchange_lost_s(&sim->cost, exchange_s);
	return alone * exchange_s + (1.0 - alone) * beside_s;
}

/* Sets the same where wlb-worker has the rows in halves. Over messages that block nothing is hidden. */
static void add_halved_tp(const struct wlb_sim *sim, struct wlb_sim_load *load, double rank_tokens)
{
	double element = wlb_machine_element_bytes(&sim->machine);
	struct collectives half = tp_collectives_s(sim, rank_tokens / 2.0, element);
	if (sim->machine.blocking_messages) {
		add_tp(sim, load, (struct wlb_seconds){0}, (struct collectives){2.0 * half.gather, 2.0 * half.reduce},
		       (struct collectives){0});
		return;
	}
	struct wlb_halved_rows halved =
		wlb_layer_halved_rows(&sim->cost, rank_tokens, half.gather, half.reduce, load->attention);
	load->tp = halved.exposed;
	load->ends_tp = (struct wlb_seconds){half.gather + half.reduce, half.gather};
	if (sim->options.plan.recompute == WLB_RECOMPUTE_FULL) {
		load->tp_recompute_s = halved.again_s;
		load->ends_tp.backward = 0.0; /* in again_s */
	}
}

int wlb_sim_recomputes_keys(const struct wlb_sim *sim)
{
	enum wlb_recompute recompute = sim->options.plan.recompute;
	return (recompute & (WLB_RECOMPUTE_FULL | WLB_RECOMPUTE_CORE_ATTN)) != 0 ||
	       (sim->options.cost.trainer == WLB_COST_WORKER && recompute == WLB_RECOMPUTE_SELECTIVE);
}

/* wlb-worker keeps the gathered keys, unless it recomputes; it copies what it sends, and what it gathers into the order
 * of documents, and back, and sets the gradients of all keys and values to 0 first. It gathers beside the product of
 * the queries and their rotary embedding (again beside a product as large: the gradient of attention's output), and
 * scatters gradients beside the product that gives the gradient of the weights of attention's output. */
struct wlb_seconds wlb_sim_worker_keys_s(const struct wlb_sim *sim, double rank_tokens, const struct wlb_sim_keys *keys)
{
	struct wlb_overlap hidden = sim->options.cost.cp_overlap;
	double elements = keys->bytes / wlb_machine_element_bytes(&sim->machine);
	double order_s = wlb_machine_op_s(&sim->machine, WLB_OP_GATHER_ROWS, elements) + keys->copy_s;
	if (sim->ranks == 1)
		return (struct wlb_seconds){0};
	return (struct wlb_seconds){
		order_s + exposed_s(keys->gather_s, wlb_layer_queries_s(&sim->cost, rank_tokens), hidden.forward),
		order_s + wlb_machine_op_s(&sim->machine, WLB_OP_ZERO, elements) +
			exposed_s(keys->reduce_s, wlb_layer_output_d_w_s(&sim->cost, rank_tokens), hidden.backward)};
}

/* Sets the tensor-parallel collectives of head and embedding, whose rows are in so many pieces. Programs other than
 * wlb-worker gather the head's input once more in the backward pass, and have no product of their size beside them. */
static void add_ends_tp(const struct wlb_sim *sim, struct wlb_sim_load *load, double rank_tokens, double pieces)
{
	const struct wlb_plan *plan = &sim->options.plan;
	double element = wlb_machine_element_bytes(&sim->machine), tp = (double)plan->layout.tp;
	double head_pieces = plan->shared_head ? 1.0 : pieces; /* a share is in one half, or nearly */
	double tokens = head_tokens(sim, rank_tokens) / head_pieces;
	struct collectives head = tp_collectives_s(sim, tokens, element);
	struct collectives piece = tp_collectives_s(sim, rank_tokens / pieces, element);
	load->embedding_tp = (struct wlb_seconds){pieces * piece.reduce, pieces * piece.gather};
	load->head_tp = (struct wlb_seconds){head.gather, head.gather + head.reduce};
	if (sim->options.cost.trainer != WLB_COST_WORKER)
		return;
	load->head_tp = (struct wlb_seconds){head_pieces * head.gather, head_pieces * head.reduce};
	if (!sim->machine.blocking_messages) {
		/* Of two pieces of the embedding, one's sum or gather runs beside the other's operation. */
		struct wlb_seconds half = {load->embedding.forward / 2.0, load->embedding.backward / 2.0};
		load->embedding_tp.forward = piece.reduce + (pieces - 1.0) * fmax(0.0, piece.reduce - half.forward);
		load->embedding_tp.backward = (pieces - 1.0) * fmax(0.0, piece.gather - half.backward);
		/* The first layer begins the gather of the first of two pieces, unless rows are scaled between. */
		if (pieces == 1.0 || wlb_family(sim->model.family)->scales_embedding)
			load->embedding_tp.backward += piece.gather;
		load->head_tp = wlb_head_waits_s(&sim->cost, head_pieces, tokens, head.gather, head.reduce);
	}
	/* Three numbers of a row from each rank, of four bytes or, as elements, of eight. */
	double parts = wlb_head_parts(&sim->cost, tokens), bytes = 3.0 * tp * tokens / parts * fmax(element, 4.0);
	load->head_tp.forward +=
		head_pieces * parts *
		wlb_machine_gather_s(&sim->machine, plan->layout.tp, sim->tp_on_node, sim->tp_crosses, bytes);
}

/* Communication of one layer: tensor parallelism gathers and scatters before and after attention and MLP, and gathers
 * both inputs once more in the backward pass (Korthikanti et al. 2022, Megatron-LM), unless each rank has whole rows;
 * context parallelism gathers keys and values, and scatters their gradients after they were gathered again (Dubey et
 * al. 2024), beside attention over those that have arrived as far as the trainer does so. */
static void add_communication(const struct wlb_sim *sim, struct wlb_sim_load *load, struct wlb_seconds products,
                              double rank_tokens, const struct wlb_sim_keys *keys)
{
	const struct wlb_layout *l = &sim->options.plan.layout;
	const struct wlb_cost_options *cost = &sim->options.cost;
	int worker = cost->trainer == WLB_COST_WORKER;
	double element = wlb_machine_element_bytes(&sim->machine);
	struct collectives tp = tp_collectives_s(sim, rank_tokens, wlb_layer_gathered_bytes(&sim->cost));
	struct collectives whole = tp_collectives_s(sim, rank_tokens, element);
	double pieces = wlb_layer_halves_rows(&sim->cost, rank_tokens) ? 2.0 : 1.0;
	if (pieces > 1.0)
		add_halved_tp(sim, load, rank_tokens);
	else
		add_tp(sim, load, products, tp, whole);
	double exchange_s = wlb_layer_exchange_s(&sim->cost, rank_tokens, sim->ep_crosses);
	load->ep = (struct wlb_seconds){exchange_adds_s(sim, exchange_s, load->compute.backward),
	                                exchange_adds_s(sim, exchange_s, load->compute.forward)};
	struct wlb_overlap hidden = sim->options.ring ? (struct wlb_overlap){1.0, 1.0} : cost->cp_overlap;
	double later = (l->cp - 1.0) / l->cp; /* of the keys, which arrive beside attention over others */
	load->cp = (struct wlb_seconds){
		exposed_s(keys->gather_s, later * load->attention.forward, hidden.forward),
		exposed_s(keys->gather_s + keys->reduce_s, later * load->attention.backward, hidden.backward)};
	if (worker)
		load->cp = wlb_sim_worker_keys_s(sim, rank_tokens, keys);
	load->beyond_cp_s = worker ? load->cp.forward : 0.0;
	if (wlb_sim_recomputes_keys(sim))
		load->cp_recompute_s = load->cp.forward;
	add_ends_tp(sim, load, rank_tokens, pieces);
	load->send_bytes = rank_tokens * (double)sim->model.hidden_size * element / l->tp;
}

static void load_sharded(struct wlb_sim *sim, size_t count, double tokens, double rank_tokens,
                         struct wlb_sim_load *load)
{
	struct sharded attention = {sim->served, sim->served, 1};
	if (sim->options.attention != WLB_SIM_SERVERS)
		attention = choose_sharding(sim, count, tokens);
	struct wlb_seconds products, linear = wlb_sim_linear_s(sim, rank_tokens, &products);
	load->compute = load->mean = linear;
	wlb_sim_add(&load->compute, attention.slowest);
	wlb_sim_add(&load->mean, attention.mean);
	load->attention = attention.slowest;
	load->per_document = attention.per_document;
}

/* Sets the attention of each rank where all ranks of all micro-batches with tokens share that of the step. */
void wlb_sim_set_served(struct wlb_sim *sim, const struct wlb_step *step)
{
	int32_t with_tokens = 0, last = -1;
	sim->served = (struct wlb_seconds){0};
	for (size_t i = 0; i < step->count; i++) {
		if (step->spans[i].span.tokens <= 0)
			continue;
		wlb_sim_add(&sim->served, wlb_sim_attention_s(sim, 0.0, (double)step->spans[i].span.tokens));
		with_tokens += step->spans[i].micro_batch != last;
		last = step->spans[i].micro_batch;
	}
	if (with_tokens > 0)
		wlb_sim_scale(&sim->served, 1.0 / (with_tokens * (double)sim->options.plan.layout.cp));
}

/* Queries, keys and values go to attention servers and outputs come back, their gradients the other way: beside the
 * computation of another micro-batch (DistCA: ping-pong), so that only what takes longer than that is exposed. */
static void add_servers(const struct wlb_sim *sim, struct wlb_sim_load *load, double rank_tokens)
{
	const struct wlb_layout *l = &sim->options.plan.layout;
	const struct wlb_model *m = &sim->model;
	double elements = 2.0 * (double)(m->num_attention_heads * wlb_model_head_width(m)) / l->tp;
	double bytes = rank_tokens * (sim->kv_token_bytes + elements * wlb_machine_element_bytes(&sim->machine));
	const struct wlb_link link = wlb_machine_network(&sim->machine, sim->dp_crosses || sim->pp_crosses);
	double s = wlb_layout_ranks(l) > wlb_machine_linked_gpus(&sim->machine)
	                   ? 2.0 * link.latency_s + bytes / link.bytes_per_s
	                   : 2.0 * wlb_machine_node_send_s(&sim->machine, bytes / 2.0);
	if (wlb_layout_ranks(l) == l->tp)
		s = 0.0;
	load->cp = (struct wlb_seconds){exposed_s(s, load->compute.forward, 1.0),
	                                exposed_s(2.0 * s, load->compute.backward, 1.0)};
}

/* Counts the tokens and the FLOPs of a forward pass. Megatron-LM counts attention to later tokens too, which no kernel
 * computes. */
static void count_flops(const struct wlb_sim *sim, size_t count, struct wlb_sim_load *load)
{
	const struct wlb_model *m = &sim->model;
	double layers = (double)m->num_hidden_layers, q = (double)(m->num_attention_heads * wlb_model_head_width(m));
	for (size_t i = 0; i < count; i++) {
		double n = (double)sim->tokens[i];
		load->tokens += sim->tokens[i];
		load->flops += wlb_cost_document(m, sim->tokens[i]);
		if (sim->options.cost.full_attention)
			load->flops += layers * 4.0 * q * (n * n - wlb_mean_pairs(m, n, n));
	}
	load->flops += 2.0 * (double)load->tokens * (double)m->hidden_size * (double)m->vocab_size;
}

/* Makes computation as long as that of the slowest rank. */
static void slow_down(const struct wlb_sim *sim, struct wlb_sim_load *load)
{
	double factor = wlb_slowest_rank(&sim->cost);
	struct wlb_seconds *const seconds[] = {&load->compute, &load->mean, &load->attention, &load->head,
	                                       &load->embedding};
	for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++)
		wlb_sim_scale(seconds[i], factor);
	load->recompute_s *= factor;
	load->recompute_mean_s *= factor;
	load->beyond_s *= factor;
	load->angles_s *= factor;
}

void wlb_sim_load(struct wlb_sim *sim, size_t count, struct wlb_sim_load *load)
{
	int32_t cp = sim->options.plan.layout.cp;
	*load = (struct wlb_sim_load){0};
	count_flops(sim, count, load);
	double tokens = (double)load->tokens, rank_tokens = ceil(tokens / cp);
	struct wlb_sim_keys keys = wlb_sim_group_keys(sim, cp, tokens * sim->kv_token_bytes);
	if (!wlb_sim_load_places(sim, count, load, &rank_tokens, &keys))
		load_sharded(sim, count, tokens, rank_tokens, load);
	if (load->tokens == 0) /* all stages skip it */
		return;
	if (sim->options.plan.recompute == WLB_RECOMPUTE_FULL) {
		double last_s = sim->options.cost.early_stop ? wlb_layer_last_s(&sim->cost, rank_tokens) : 0.0;
		load->recompute_s = load->compute.forward - last_s;
		load->recompute_mean_s = load->mean.forward - last_s;
		load->beyond_s = wlb_layer_modules_s(&sim->cost, rank_tokens);
	} else {
		load->recompute_s = load->recompute_mean_s = wlb_layer_modules_s(&sim->cost, rank_tokens);
	}
	load->head = wlb_head_s(&sim->cost, head_tokens(sim, rank_tokens));
	load->embedding = wlb_embedding_s(&sim->cost, rank_tokens);
	load->angles_s = wlb_angles_s(&sim->cost, rank_tokens);
	slow_down(sim, load);
	add_communication(sim, load, wlb_layer_products_s(&sim->cost, rank_tokens), rank_tokens, &keys);
	if (sim->options.attention == WLB_SIM_SERVERS)
		add_servers(sim, load, rank_tokens);
}

/* Uses the mean token of a micro-batch of one window, since the products of a micro-batch are large although each of
 * its documents may be short. */
void wlb_sim_set_token_s(struct wlb_sim *sim)
{
	int32_t cp = sim->options.plan.layout.cp;
	double window = (double)sim->model.max_position_embeddings;
	/* Where ranks are chosen for each document few are split; a ring and servers hide the communication. */
	int exposed = sim->options.attention == WLB_SIM_SHARDED && !sim->options.ring;
	struct wlb_sim_keys keys = wlb_sim_group_keys(sim, cp, exposed ? window * sim->kv_token_bytes : 0.0);
	struct wlb_sim_keys none = wlb_sim_group_keys(sim, cp, 0.0);
	/* Documents that exchange keys are long: their attention hides what the trainer runs beside it. */
	struct wlb_sim_load load = {.attention = {INFINITY, INFINITY}}, empty = load;
	struct wlb_seconds products, linear = wlb_sim_linear_s(sim, ceil(window / cp), &products);
	load.compute = linear;
	add_communication(sim, &load, products, ceil(window / cp), &keys);
	/* Latencies belong to the micro-batch and do not depend on its documents. */
	add_communication(sim, &empty, products, 0.0, &none);
	sim->token_s = (wlb_sim_both(linear) + wlb_sim_both(load.tp) + wlb_sim_both(load.cp) + wlb_sim_both(load.ep) -
	                wlb_sim_both(empty.tp) - wlb_sim_both(empty.cp) - wlb_sim_both(empty.ep)) /
	               window;
}
