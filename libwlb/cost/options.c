/* Sets and checks the options of the cost model: how a training program runs. */
#include "libwlb/wlb.h"

/* The share that --tp-comm-overlap hides is calibrated to the Megatron Core H100 table (docs/results/planner.md). */
static const double tp_overlap = 0.85;

void wlb_cost_options_init(struct wlb_cost_options *options)
{
	*options = (struct wlb_cost_options){
		.trainer = WLB_COST_MEGATRON,
		.tp_overlap = tp_overlap,
		.overlap_gradients = 1,
		.overlap_parameters = 1,
		.overlap_pp = 1,
		.gradient_bytes = 4,
	};
}

void wlb_cost_options_worker(struct wlb_cost_options *options, const struct wlb_machine *machine)
{
	double element = wlb_machine_element_bytes(machine);
	*options = (struct wlb_cost_options){
		.trainer = WLB_COST_WORKER,
		.overlap_gradients = !machine->blocking_messages,
		.overlap_pp = !machine->blocking_messages,
		.gradient_bytes = element < 4.0 ? 4 : (int32_t)element,
		.keep_outputs = 1,
	};
}

int wlb_cost_options_check(const struct wlb_cost_options *options, struct wlb_error *error)
{
	if (options->trainer != WLB_COST_MEGATRON && options->trainer != WLB_COST_WORKER)
		return wlb_fail(error, "trainer is %d: it must be WLB_COST_MEGATRON or WLB_COST_WORKER",
		                (int)options->trainer);
	if (!(options->tp_overlap >= 0.0 && options->tp_overlap <= 1.0))
		return wlb_fail(error, "tp_overlap is %g: it must lie between 0 and 1", options->tp_overlap);
	if (!(options->cp_overlap >= 0.0 && options->cp_overlap <= 1.0))
		return wlb_fail(error, "cp_overlap is %g: it must lie between 0 and 1", options->cp_overlap);
	if (options->gradient_bytes != 2 && options->gradient_bytes != 4 && options->gradient_bytes != 8)
		return wlb_fail(error, "gradient_bytes is %d: it must be 2, 4 or 8", options->gradient_bytes);
	return 0;
}
