/* What it costs to have a document on several ranks. */
#include <math.h>

#include "libwlb/cost/plan_sizes.h"

/* Of an exchange that is long enough for its latency to be none of it. */
static const double many_tokens = 1 << 20;

/* Ranks of a stage on a node, of which neighbours are tensor-parallel, then context-parallel, then stages. */
static int stage_ranks_on_node(const struct wlb_layout *l, int gpus)
{
	double cp = fmax(1.0, fmin(l->cp, gpus / l->tp)), replicas = gpus / (l->tp * l->cp * l->pp);
	return (int)(cp * fmax(1.0, fmin(l->dp, replicas)));
}

static double beyond_call_s(const struct wlb_machine *machine, enum wlb_op op, double elements)
{
	return wlb_machine_op_s(machine, op, elements) - wlb_machine_op_s(machine, op, 0.0);
}

double wlb_machine_key_s(const struct wlb_machine *machine, const struct wlb_model *model,
                         const struct wlb_layout *layout)
{
	const struct wlb_plan plan = {.layout = *layout};
	int ranks = layout->cp * layout->dp, on_node = stage_ranks_on_node(layout, wlb_machine_linked_gpus(machine));
	double elements = 2.0 * wlb_plan_kv_width(&plan, model) * many_tokens;
	double bytes = elements * wlb_machine_element_bytes(machine);
	if (ranks == 1)
		return 0.0;
	double moved_s = wlb_machine_gather_s(machine, ranks, on_node, 0, bytes) -
	                 wlb_machine_gather_s(machine, ranks, on_node, 0, 0.0) +
	                 wlb_machine_reduce_s(machine, ranks, on_node, 0, bytes) -
	                 wlb_machine_reduce_s(machine, ranks, on_node, 0, 0.0);
	/* Into the order of documents, and back; the gradients are set to 0 before. */
	double copied_s = 2.0 * beyond_call_s(machine, WLB_OP_GATHER_ROWS, elements) +
	                  beyond_call_s(machine, WLB_OP_ZERO, elements);
	return (moved_s * ranks / (ranks - 1.0) + copied_s) / many_tokens;
}
