/* The times of a pass, of its sends, and of the communication between replicas. */
#include "libwlb/layout/plan.h"
#include "libwlb/simulation/sim.h"

#include <math.h>

enum {
	WEIGHT_BYTES = 2,
	GRADIENT_BYTES = 4,
	/* Reads gradient, master weight and both moments, writes the three and the bfloat16 weight. */
	OPTIMIZER_TRAFFIC_BYTES = 4 * 4 + 3 * 4 + 2,
};

static double gather_group_s(const struct wlb_sim *sim, double bytes)
{
	const struct wlb_layout *l = &sim->options.plan.layout;
	return wlb_machine_gather_s(&sim->machine, l->dp * l->cp, sim->dp_on_node, sim->dp_crosses, bytes);
}

double wlb_sim_reduce_s(const struct wlb_sim *sim, int32_t stage, int32_t chunk)
{
	const struct wlb_plan *plan = &sim->options.plan;
	double bytes = GRADIENT_BYTES * wlb_plan_chunk_parameters(plan, &sim->model, stage, chunk);
	/* An all-reduce gathers what it has scattered; with ZeRO each rank keeps its part. */
	return gather_group_s(sim, bytes) * (plan->zero_stage == 0 ? 2.0 : 1.0);
}

double wlb_sim_gather_weights_s(const struct wlb_sim *sim, int32_t stage, int32_t chunk)
{
	double bytes = WEIGHT_BYTES * wlb_plan_chunk_parameters(&sim->options.plan, &sim->model, stage, chunk);
	return gather_group_s(sim, bytes);
}

double wlb_sim_optimizer_s(const struct wlb_sim *sim)
{
	const struct wlb_plan *plan = &sim->options.plan;
	double most = 0.0, shards = plan->zero_stage >= 1 ? (double)plan->layout.dp * plan->layout.cp : 1.0;
	for (int32_t s = 0; s < plan->layout.pp; s++) {
		double parameters = 0.0;
		for (int32_t c = 0; c < plan->interleave; c++)
			parameters += wlb_plan_chunk_parameters(plan, &sim->model, s, c);
		most = fmax(most, parameters);
	}
	return most / shards * OPTIMIZER_TRAFFIC_BYTES / sim->machine.memory_bytes_per_s;
}

double wlb_sim_recompute_s(const struct wlb_sim *sim, const struct wlb_sim_load *load, double slow)
{
	if (sim->options.plan.recompute != WLB_RECOMPUTE_FULL)
		return 0.0;
	return slow * load->forward_s + load->tp_forward_s + load->cp_forward_s;
}

static double exposed(const struct wlb_sim *sim, double communication_s, double computation_s)
{
	return sim->options.cost.overlap_gradients ? fmax(0.0, communication_s - computation_s) : communication_s;
}

double wlb_sim_time_passes(const struct wlb_sim *sim, const struct wlb_sim_load *load, int32_t stage, int32_t chunk,
                           double slow, double *forward_s, double *backward_s)
{
	const struct wlb_plan *plan = &sim->options.plan;
	double layers = (double)wlb_plan_layers(plan, &sim->model, stage, chunk);
	*forward_s = layers * (slow * load->forward_s + load->tp_forward_s + load->cp_forward_s);
	*backward_s = layers * (slow * load->backward_s + load->tp_backward_s + load->cp_backward_s +
	                        wlb_sim_recompute_s(sim, load, slow));
	if (stage == plan->layout.pp - 1 && chunk == plan->interleave - 1) {
		*forward_s += slow * load->head_forward_s;
		*backward_s += slow * load->head_backward_s;
	}
	if (plan->zero_stage < 2)
		return 0.0;
	double weights_s = plan->zero_stage == 3 ? wlb_sim_gather_weights_s(sim, stage, chunk) : 0.0;
	double before_s = exposed(sim, weights_s, *forward_s);
	double after_s = exposed(sim, weights_s + wlb_sim_reduce_s(sim, stage, chunk), *backward_s);
	*forward_s += before_s;
	*backward_s += after_s;
	return before_s + after_s;
}

double wlb_sim_send_s(const struct wlb_sim *sim, int32_t replica, int32_t stage, double bytes)
{
	const struct wlb_layout *l = &sim->options.plan.layout;
	int group = l->tp * l->cp, base = replica * l->pp * group, gpus = sim->machine.gpus_per_node;
	int from = (base + stage * group) / gpus, to = (base + (stage + 1) % l->pp * group) / gpus;
	if (from == to)
		return sim->machine.node_link.latency_s + bytes / sim->machine.node_link.bytes_per_s;
	int leaves = sim->options.leaf != NULL && sim->options.leaf[from] != sim->options.leaf[to];
	const struct wlb_link link = wlb_machine_network(&sim->machine, leaves);
	return link.latency_s + bytes / link.bytes_per_s;
}
