/* Sets and checks the options of the cost model: how a training program runs. */
#include "libwlb/wlb.h"

/* The share that --tp-comm-overlap hides is calibrated to the Megatron Core H100 table (docs/results/planner.md). */
static const struct wlb_overlap tp_overlap = {0.85, 0.85};

/* wlb-worker over NCCL (worker/model/layer.c): backward, one of two gathers and the sum of each half of a layer. */
static const struct wlb_overlap worker_tp_overlap = {0.0, 4.0 / 6.0}, worker_cp_overlap = {0.0, 1.0};

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
		.gradient_bytes = element < 4.0 ? 4 : (int32_t)element,
		.keep_outputs = 1,
	};
	if (machine->blocking_messages)
		return;
	options->tp_overlap = worker_tp_overlap;
	options->cp_overlap = worker_cp_overlap;
	options->overlap_gradients = options->overlap_parameters = options->overlap_pp = 1;
}

static int check_overlap(const char *name, const struct wlb_overlap *overlap, struct wlb_error *error)
{
	const double shares[] = {overlap->forward, overlap->backward};
	for (int i = 0; i < 2; i++)
		if (!(shares[i] >= 0.0 && shares[i] <= 1.0))
			return wlb_fail(error, "%s is %g: it must lie between 0 and 1", name, shares[i]);
	return 0;
}

int wlb_cost_options_check(const struct wlb_cost_options *options, struct wlb_error *error)
{
	if (options->trainer != WLB_COST_MEGATRON && options->trainer != WLB_COST_WORKER)
		return wlb_fail(error, "trainer is %d: it must be WLB_COST_MEGATRON or WLB_COST_WORKER",
		                (int)options->trainer);
	if (check_overlap("tp_overlap", &options->tp_overlap, error) < 0 ||
	    check_overlap("cp_overlap", &options->cp_overlap, error) < 0)
		return -1;
	if (!(options->elementwise == 0.0 || (options->elementwise >= 1.0 && options->elementwise <= 100.0)))
		return wlb_fail(error, "elementwise is %g: it must be 0, or between 1 and 100", options->elementwise);
	if (!(options->growth >= 0.0 && options->growth <= 0.1))
		return wlb_fail(error, "growth is %g: it must lie between 0 and 0.1", options->growth);
	if (options->trainer == WLB_COST_WORKER &&
	    (options->unfused_attention || options->whole_rows || options->early_stop))
		return wlb_fail(error, "unfused_attention, whole_rows and early_stop must be 0 for wlb-worker");
	if (options->gradient_bytes != 2 && options->gradient_bytes != 4 && options->gradient_bytes != 8)
		return wlb_fail(error, "gradient_bytes is %d: it must be 2, 4 or 8", options->gradient_bytes);
	return 0;
}
