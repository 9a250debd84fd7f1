#include "planner/cli/plan/trainer.h"

static void replace(const struct wlb_trainer_request *request, struct wlb_cost_options *cost)
{
	int *const flags[] = {&cost->overlap_gradients, &cost->overlap_parameters, &cost->overlap_pp,
	                      &cost->fp8_parameters};
	const int said[] = {request->overlap_gradients, request->overlap_parameters, request->overlap_pp,
	                    request->fp8_parameters};
	for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++)
		*flags[i] = said[i] > 0 ? said[i] - 1 : *flags[i];
	if (request->tp_overlap >= 0.0)
		cost->tp_overlap = (struct wlb_overlap){request->tp_overlap, request->tp_overlap};
	if (request->cp_overlap >= 0.0)
		cost->cp_overlap = (struct wlb_overlap){request->cp_overlap, request->cp_overlap};
	if (request->gradient_type > 0)
		cost->gradient_bytes = request->gradient_type == 1 ? 4 : 2;
	cost->release_activations |= request->release_activations;
}

int wlb_trainer_read(const struct wlb_trainer_request *request, struct wlb_trainer_file *file,
                     struct wlb_machine *machine, struct wlb_cost_options *cost, struct wlb_error *error)
{
	if (wlb_trainer_file_read(request->name, file, error) < 0)
		return wlb_fail_in(error, "--trainer");
	if (wlb_trainer_file_apply(file, request->attention, machine, cost, error) < 0)
		return wlb_fail_in(error, "--attention");
	if (cost->trainer != WLB_COST_WORKER)
		replace(request, cost);
	if (request->tp_halves > 0 && cost->trainer != WLB_COST_WORKER)
		return wlb_fail(error, "--tp-halves %d: wlb-worker has it; add --trainer worker", request->tp_halves);
	cost->halved_rows = request->tp_halves;
	cost->fp8 = (enum wlb_fp8)request->fp8;
	if (cost->fp8 != WLB_FP8_NONE && cost->trainer == WLB_COST_WORKER)
		return wlb_fail(error, "--fp8: wlb-worker has no products in 8 bits; leave it out, or plan for another "
		                       "--trainer");
	if (wlb_machine_fp8_check(machine, cost->fp8, error) < 0)
		return wlb_fail_in(error, "--fp8");
	cost->full_attention = request->full_attention;
	return 0;
}
