/* Parts of a layer's seconds that loads are made of. */
#include "libwlb/simulation/sim_state.h"

void wlb_sim_add(struct wlb_seconds *sum, struct wlb_seconds more)
{
	sum->forward += more.forward;
	sum->backward += more.backward;
}

void wlb_sim_scale(struct wlb_seconds *seconds, double factor)
{
	seconds->forward *= factor;
	seconds->backward *= factor;
}

double wlb_sim_both(struct wlb_seconds s)
{
	return s.forward + s.backward;
}

struct wlb_seconds wlb_sim_attention_s(const struct wlb_sim *sim, double from, double to)
{
	return wlb_layer_attention_s(&sim->cost, to - from, to);
}

/* 2 x ranks chunks, first paired with last. In a ring it does so in `ranks` pieces, one for the keys of each rank, of
 * as many pairs as the first: the causal attention of its own two chunks (Transformer Engine, context_parallel.py: all
 * queries over one chunk of keys, or one of queries over both). */
struct wlb_seconds wlb_sim_attention_share_s(const struct wlb_sim *sim, double tokens, int32_t ranks)
{
	if (ranks == 1)
		return wlb_sim_attention_s(sim, 0.0, tokens);
	if (sim->options.ring) {
		struct wlb_seconds pieces = wlb_sim_attention_s(sim, 0.0, tokens / ranks);
		wlb_sim_scale(&pieces, ranks);
		return pieces;
	}
	double chunk = tokens / (2.0 * ranks);
	struct wlb_seconds sum = wlb_sim_attention_s(sim, 0.0, chunk);
	wlb_sim_add(&sum, wlb_sim_attention_s(sim, tokens - chunk, tokens));
	return sum;
}

struct wlb_seconds wlb_sim_linear_s(const struct wlb_sim *sim, double tokens, struct wlb_seconds *products)
{
	*products = wlb_layer_products_s(&sim->cost, tokens);
	struct wlb_seconds sum = wlb_layer_elementwise_s(&sim->cost, tokens);
	wlb_sim_add(&sum, *products);
	return sum;
}

struct wlb_sim_keys wlb_sim_group_keys(const struct wlb_sim *sim, int32_t ranks, double bytes)
{
	int in_replica = ranks <= sim->options.plan.layout.cp;
	int most_on_node = in_replica ? sim->cp_on_node : sim->dp_on_node;
	int crosses = in_replica ? sim->cp_crosses : sim->dp_crosses;
	int on_node = ranks < most_on_node ? ranks : most_on_node;
	double own_elements = bytes / wlb_machine_element_bytes(&sim->machine) / ranks;
	return (struct wlb_sim_keys){
		.gather_s = wlb_machine_gather_s(&sim->machine, ranks, on_node, crosses, bytes),
		.reduce_s = wlb_machine_reduce_s(&sim->machine, ranks, on_node, crosses, bytes),
		.copy_s = wlb_machine_op_s(&sim->machine, WLB_OP_GATHER_ROWS, own_elements),
		.bytes = bytes,
	};
}

double wlb_sim_document_s(const void *context, int64_t document_tokens)
{
	const struct wlb_sim *sim = context;
	int32_t cp = sim->options.plan.layout.cp;
	double tokens = (double)document_tokens;
	/* Few documents are split; the others take the time of whole documents on one rank. */
	double attention = sim->options.attention == WLB_SIM_SHARDED
	                           ? wlb_sim_both(wlb_sim_attention_share_s(sim, tokens, cp))
	                           : wlb_sim_both(wlb_sim_attention_share_s(sim, tokens, 1)) / cp;
	return tokens * sim->token_s + attention;
}
