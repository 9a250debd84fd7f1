#include "planner/cli/plan/trainer.h"

struct wlb_cost_options wlb_trainer_cost(const struct wlb_trainer_request *request, const struct wlb_machine *machine)
{
	struct wlb_cost_options cost;
	if (request->trainer == WLB_COST_WORKER) {
		wlb_cost_options_worker(&cost, machine);
	} else {
		wlb_cost_options_init(&cost);
		cost.tp_overlap = (struct wlb_overlap){request->tp_overlap, request->tp_overlap};
		cost.cp_overlap = (struct wlb_overlap){request->cp_overlap, request->cp_overlap};
		cost.overlap_gradients = request->overlap_gradients;
		cost.overlap_parameters = request->overlap_parameters;
		cost.overlap_pp = request->overlap_pp;
		cost.gradient_bytes = request->gradient_type == 0 ? 4 : 2;
		cost.release_activations = request->release_activations;
	}
	cost.full_attention = request->full_attention;
	return cost;
}
