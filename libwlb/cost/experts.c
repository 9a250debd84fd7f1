/* The exchange of rows with the ranks of their experts. */
#include "libwlb/cost/layer.h"

#include <math.h>

#include "libwlb/cost/plan_sizes.h"

/* Returns on how many of `parts` parts of the experts are a row's, which are neighbours and follow those of the row
 * before: they begin at each multiple of the greatest common divisor as often. */
static double parts_in_turn(const struct wlb_model *m, double parts)
{
	int64_t in_part = (int64_t)((double)m->num_experts / parts), divisor = m->num_experts_per_tok;
	for (int64_t rest = in_part; rest > 0;) {
		int64_t next = divisor % rest;
		divisor = rest;
		rest = next;
	}
	return fmin(parts, 1.0 + (double)(m->num_experts_per_tok - divisor) / (double)in_part);
}

/* Returns how likely one of `parts` parts of the experts has some of a row's. */
static double part_share(const struct wlb_layer_cost *cost, double parts)
{
	const struct wlb_model *m = cost->model;
	double none = 1.0; /* of the row's experts are in the part */
	if (cost->options->experts_in_turn)
		return parts_in_turn(m, parts) / parts;
	for (int64_t i = 0; i < m->num_experts_per_tok; i++)
		none *= fmax(0.0, (double)(m->num_experts - i) - (double)m->num_experts / parts) /
		        (double)(m->num_experts - i);
	return 1.0 - none;
}

double wlb_layer_exchange_s(const struct wlb_layer_cost *cost, double tokens, int crosses_switch)
{
	const struct wlb_model *m = cost->model;
	int ranks = wlb_plan_expert_ranks(cost->plan), tp = cost->plan->layout.tp;
	int linked = wlb_machine_linked_gpus(cost->machine), on_node = linked > tp ? linked / tp : 1;
	if (ranks == 1)
		return 0.0;
	double near = on_node < ranks ? on_node : ranks, copies = (double)m->num_experts_per_tok;
	double near_rows = copies * (near - 1.0) / ranks, far_rows = copies * (ranks - near) / ranks;
	if (cost->options->rows_by_node || cost->options->rows_by_rank) {
		near_rows = copies * (near - 1.0) / near;
		far_rows = (ranks / near - 1.0) * part_share(cost, ranks / near);
	}
	if (cost->options->rows_by_rank)
		near_rows = ranks * part_share(cost, ranks) * (near - 1.0) / near;
	if (cost->options->exchange_rate > 0.0)
		far_rows /= cost->options->exchange_rate;
	double row_bytes = tokens / tp * (double)m->hidden_size * wlb_machine_element_bytes(cost->machine);
	return 2.0 * wlb_model_expert_layers_share(m) *
	       wlb_machine_exchange_s(cost->machine, ranks, on_node, crosses_switch, near_rows * row_bytes,
	                              far_rows * row_bytes);
}

int wlb_layer_hides_exchange(const struct wlb_layer_cost *cost)
{
	const struct wlb_plan *plan = cost->plan;
	int again = plan->recompute == WLB_RECOMPUTE_FULL || (plan->recompute & WLB_RECOMPUTE_MOE);
	return cost->options->exchange_processors > 0 && !again && (plan->layout.pp == 1 || plan->interleave > 1);
}

double wlb_layer_exchange_lost_s(const struct wlb_layer_cost *cost, double exchange_s)
{
	double processors = cost->machine->processors;
	return processors > 0.0 ? exchange_s * fmin(1.0, cost->options->exchange_processors / processors) : 0.0;
}
