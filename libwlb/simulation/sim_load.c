/* The load of a micro-batch: seconds of one layer, from its documents. */
#include "libwlb/layout/plan.h"
#include "libwlb/simulation/sim.h"

#include <math.h>
#include <string.h>

enum { ELEMENT_BYTES = 2 }; /* bfloat16 */

/* A fused kernel's backward pass does 5 matrix products where the forward pass does 2 (Dao 2023). */
static const double backward_products = 2.5;

/* Dynamic context parallelism: most tokens on a rank, in equal shares of the micro-batch. Memory bounds it. */
static const double most_rank_share = 1.25;

/* Seconds of attention, one layer forward, of the queries [from, to) of a document, each of which sees itself and all
 * before it. The kernel works in tiles of queries, padded to full ones, and what it does for a tile beside its
 * keys takes as long as attention_overhead_keys more of them. */
static double attention_s(const struct wlb_sim *sim, double from, double to)
{
	double tile = (double)sim->machine.attention_tile_tokens, queries = to - from;
	double tiles = ceil(queries / tile), keys = (from + to + 1.0) / 2.0;
	return tiles * tile * (keys + sim->machine.attention_overhead_keys) * sim->pair_s;
}

/* A document over `ranks` ranks, 2 x ranks chunks, first paired with last: each rank does the same. */
static double attention_share_s(const struct wlb_sim *sim, double tokens, int32_t ranks)
{
	if (ranks == 1)
		return attention_s(sim, 0.0, tokens);
	double chunk = tokens / (2.0 * ranks);
	return attention_s(sim, 0.0, chunk) + attention_s(sim, tokens - chunk, tokens);
}

static double linear_s(const struct wlb_sim *sim, double tokens)
{
	const struct wlb_machine *machine = &sim->machine;
	double efficiency = machine->gemm_efficiency;
	return tokens * (sim->layer_token_flops / (machine->peak_flops * efficiency) +
	                 sim->layer_token_bytes / machine->memory_bytes_per_s);
}

/* Adds each rank's attention where 2 x cp equal chunks of the whole are paired. */
static void shard_sequence(struct wlb_sim *sim, size_t count, double tokens)
{
	int32_t cp = sim->options.plan.layout.cp, chunks = 2 * cp, chunk = 0;
	double at = 0.0;
	memset(sim->rank_s, 0, (size_t)cp * sizeof(*sim->rank_s));
	for (size_t i = 0; i < count; i++) {
		double start = at, end = at + (double)sim->tokens[i];
		while (at < end) {
			double limit = chunk == chunks - 1 ? tokens : floor(tokens * (chunk + 1) / chunks);
			double to = limit < end ? limit : end;
			int32_t rank = chunk < cp ? chunk : chunks - 1 - chunk;
			if (to > at)
				sim->rank_s[rank] += attention_s(sim, at - start, to - start);
			at = to;
			if (to == limit && chunk < chunks - 1)
				chunk++;
		}
	}
}

static double shard_documents_s(const struct wlb_sim *sim, size_t count)
{
	double sum = 0.0;
	for (size_t i = 0; i < count; i++)
		if (sim->tokens[i] > 0)
			sum += attention_share_s(sim, (double)sim->tokens[i], sim->options.plan.layout.cp);
	return sum;
}

/* Attention of the slowest rank and of the mean one where every rank has the same tokens. */
static void choose_sharding(struct wlb_sim *sim, size_t count, double tokens, double *slowest_s, double *mean_s,
                            int32_t *per_document)
{
	int32_t cp = sim->options.plan.layout.cp;
	double document_s = shard_documents_s(sim, count);
	*slowest_s = *mean_s = document_s;
	*per_document = 1;
	if (cp == 1 || sim->options.sharding == WLB_SHARDING_DOCUMENT)
		return;
	shard_sequence(sim, count, tokens);
	double most_s = 0.0, sum_s = 0.0;
	for (int32_t r = 0; r < cp; r++) {
		most_s = fmax(most_s, sim->rank_s[r]);
		sum_s += sim->rank_s[r];
	}
	if (sim->options.sharding == WLB_SHARDING_ADAPTIVE && document_s <= most_s)
		return;
	*slowest_s = most_s;
	*mean_s = sum_s / cp;
	*per_document = 0;
}

static double gather_tp_s(const struct wlb_sim *sim, double rank_tokens)
{
	return wlb_machine_gather_s(&sim->machine, sim->options.plan.layout.tp, sim->tp_on_node, sim->tp_crosses,
	                            rank_tokens * (double)sim->model.hidden_size * ELEMENT_BYTES);
}

/* Communication of one layer: tensor parallelism gathers and scatters before and after attention and MLP, and gathers
 * both inputs once more in the backward pass (Korthikanti et al. 2022, Megatron-LM); context parallelism gathers keys
 * and values, gathers them again in the backward pass and scatters their gradients (Dubey et al. 2024). */
static void add_communication(const struct wlb_sim *sim, struct wlb_sim_load *load, double rank_tokens, double kv_bytes)
{
	const struct wlb_layout *l = &sim->options.plan.layout;
	double tp_s = gather_tp_s(sim, rank_tokens) * (1.0 - sim->options.cost.tp_overlap);
	double cp_s = wlb_machine_gather_s(&sim->machine, l->cp, sim->cp_on_node, sim->cp_crosses, kv_bytes) *
	              (1.0 - sim->options.cost.cp_overlap);
	load->tp_forward_s = 4.0 * tp_s;
	load->tp_backward_s = 6.0 * tp_s;
	load->cp_forward_s = cp_s;
	load->cp_backward_s = 2.0 * cp_s;
	load->head_forward_s += gather_tp_s(sim, rank_tokens);
	load->head_backward_s += 2.0 * gather_tp_s(sim, rank_tokens);
	load->send_bytes = rank_tokens * (double)sim->model.hidden_size * ELEMENT_BYTES / l->tp;
}

static void add_backward(const struct wlb_sim *sim, double linear, double attention, double *forward_s,
                         double *backward_s)
{
	double ratio =
		backward_products * sim->machine.attention_efficiency / sim->machine.attention_backward_efficiency;
	if (sim->options.plan.recompute == WLB_RECOMPUTE_NONE)
		ratio *= 2.0 / backward_products; /* scores were kept */
	*forward_s = linear + attention;
	*backward_s = 2.0 * linear + ratio * attention;
}

/* Documents on 1, 2, 4 ... cp ranks of their own, and the work of ranks made equal by wlb_dynamic_cp. 0 where they find
 * no space, else 1. */
static int load_dynamic(struct wlb_sim *sim, size_t count, struct wlb_sim_load *load, double *kv_bytes,
                        double *most_tokens)
{
	int32_t cp = sim->options.plan.layout.cp;
	int64_t most = (int64_t)(most_rank_share * (double)load->tokens / cp) + 1;
	if (wlb_dynamic_cp(&sim->model, sim->tokens, count, cp, 1, most, sim->places, sim->rank_loads, NULL) < 0)
		return 0;
	memset(sim->rank_s, 0, (size_t)cp * sizeof(*sim->rank_s));
	memset(sim->rank_bytes, 0, (size_t)cp * sizeof(*sim->rank_bytes));
	for (size_t i = 0; i < count; i++) {
		const struct wlb_place *place = &sim->places[i];
		double tokens = (double)sim->tokens[i];
		double attention = attention_share_s(sim, tokens, place->ranks);
		for (int32_t r = place->first_rank; r < place->first_rank + place->ranks; r++) {
			sim->rank_s[r] += attention;
			sim->rank_bytes[r] += tokens * sim->kv_token_bytes * (place->ranks - 1) / place->ranks;
		}
	}
	double forward_s, backward_s, bytes = 0.0;
	for (int32_t r = 0; r < cp; r++) {
		double rank_tokens = (double)sim->rank_loads[r].tokens;
		add_backward(sim, linear_s(sim, rank_tokens), sim->rank_s[r], &forward_s, &backward_s);
		load->forward_s = fmax(load->forward_s, forward_s);
		load->backward_s = fmax(load->backward_s, backward_s);
		load->forward_mean_s += forward_s / cp;
		load->backward_mean_s += backward_s / cp;
		*most_tokens = fmax(*most_tokens, rank_tokens);
		bytes = fmax(bytes, sim->rank_bytes[r]);
	}
	*kv_bytes = cp > 1 ? bytes * cp / (cp - 1) : 0.0;
	load->per_document = 1;
	return 1;
}

void wlb_sim_load(struct wlb_sim *sim, size_t count, struct wlb_sim_load *load)
{
	int32_t cp = sim->options.plan.layout.cp;
	*load = (struct wlb_sim_load){0};
	for (size_t i = 0; i < count; i++) {
		load->tokens += sim->tokens[i];
		load->flops += wlb_cost_document(&sim->model, sim->tokens[i]);
	}
	double tokens = (double)load->tokens, rank_tokens = ceil(tokens / cp), kv_bytes = tokens * sim->kv_token_bytes;
	load->flops += 2.0 * tokens * (double)sim->model.hidden_size * (double)sim->model.vocab_size;
	double most_tokens = 0.0;
	if (sim->options.dynamic && cp > 1 && load_dynamic(sim, count, load, &kv_bytes, &most_tokens)) {
		rank_tokens = most_tokens;
	} else {
		double slowest_s, mean_s, linear = linear_s(sim, rank_tokens);
		choose_sharding(sim, count, tokens, &slowest_s, &mean_s, &load->per_document);
		add_backward(sim, linear, slowest_s, &load->forward_s, &load->backward_s);
		add_backward(sim, linear, mean_s, &load->forward_mean_s, &load->backward_mean_s);
	}
	double efficiency = sim->machine.gemm_efficiency;
	load->head_forward_s = rank_tokens * sim->head_token_flops / (sim->machine.peak_flops * efficiency);
	load->head_backward_s = 2.0 * load->head_forward_s;
	add_communication(sim, load, rank_tokens, kv_bytes);
}

double wlb_sim_document_s(const void *context, int64_t document_tokens)
{
	const struct wlb_sim *sim = context;
	int32_t cp = sim->options.plan.layout.cp;
	double tokens = (double)document_tokens, rank_tokens = tokens / cp, forward_s, backward_s;
	/* Dynamic context parallelism splits few documents: the others cost as much as whole documents on one rank. */
	int dynamic = sim->options.dynamic;
	double attention = dynamic ? attention_share_s(sim, tokens, 1) / cp : attention_share_s(sim, tokens, cp);
	add_backward(sim, linear_s(sim, rank_tokens), attention, &forward_s, &backward_s);
	/* Latencies belong to the micro-batch and do not depend on its documents. */
	struct wlb_sim_load load = {0}, empty = {0};
	add_communication(sim, &load, rank_tokens, dynamic ? 0.0 : tokens * sim->kv_token_bytes);
	add_communication(sim, &empty, 0.0, 0.0);
	return forward_s + backward_s + load.tp_forward_s + load.tp_backward_s + load.cp_forward_s +
	       load.cp_backward_s -
	       (empty.tp_forward_s + empty.tp_backward_s + empty.cp_forward_s + empty.cp_backward_s);
}
