/* Sets and checks the options of the cost model: how a training program runs. */
#include "libwlb/wlb.h"

/* The share that --tp-comm-overlap hides is calibrated to the Megatron Core H100 table (docs/results/planner.md). */
static const struct wlb_overlap tp_overlap = {0.85, 0.85};

/* wlb-worker over NCCL (worker/model/layer.c): of tensor parallelism backward one of two gathers and the sum of each
 * half of a layer; of context parallelism what fits beside one product. */
static const struct wlb_overlap worker_tp_overlap = {0.0, 4.0 / 6.0}, worker_cp_overlap = {1.0, 1.0};

/* Of a process of PyTorch on an A100 of 80 GB, by what it has in use less what its allocator reserves:
 * github.com/lianqi1008/Control-GIC/issues/6, github.com/TianheWu/CoSeR/issues/10. */
static const double context_bytes = 0.49 * 1024 * 1024 * 1024;

/* Of what a rank of wlb-worker allocates on a CPU, what MPI and the library of products take beside it: assumed. On a
 * GPU it allocates once what it needs. */
static const double host_share = 0.1;

void wlb_cost_options_init(struct wlb_cost_options *options)
{
	*options = (struct wlb_cost_options){
		.trainer = WLB_COST_MEGATRON,
		.tp_overlap = tp_overlap,
		.overlap_gradients = 1,
		.overlap_parameters = 1,
		.overlap_pp = 1,
		.gradient_bytes = 4,
		.logit_bytes = 6.0,
		.fragmentation = 0.06, /* as libwlb/trainers/megatron.json */
		.context_bytes = context_bytes,
		.fp8_inputs = 1,
		.optimizer_bytes = 12.0,
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
	options->fragmentation = machine->blocking_messages ? host_share : 0.0;
	if (machine->blocking_messages)
		return;
	options->context_bytes = context_bytes;
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

static int check_numbers(const struct wlb_cost_options *o, struct wlb_error *error)
{
	const struct {
		const char *name;
		double value, least, most;
	} numbers[] = {
		{"growth", o->growth, 0.0, 0.1},
		{"halved_rows", (double)o->halved_rows, 0.0, o->trainer == WLB_COST_WORKER ? 0x1p30 : 0.0},
		{"logit_bytes", o->logit_bytes, o->trainer == WLB_COST_WORKER ? 0.0 : 2.0, 16.0},
		{"optimizer_bytes", o->optimizer_bytes, o->trainer == WLB_COST_WORKER ? 0.0 : 4.0, 12.0},
		{"fragmentation", o->fragmentation, 0.0, 1.0},
		{"context_bytes", o->context_bytes, 0.0, 0x1p36},
		{"exchange_rate", o->exchange_rate, 0.0, 1.0},
		{"exchange_processors", o->exchange_processors, 0.0, 1024.0},
	};
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!(numbers[i].value >= numbers[i].least && numbers[i].value <= numbers[i].most))
			return wlb_fail(error, "%s is %g: it must lie between %g and %g", numbers[i].name,
			                numbers[i].value, numbers[i].least, numbers[i].most);
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
	if (check_numbers(options, error) < 0)
		return -1;
	if (options->trainer == WLB_COST_WORKER &&
	    (options->unfused_attention || options->whole_rows || options->early_stop || options->eager))
		return wlb_fail(error, "unfused_attention, whole_rows, early_stop and eager must be 0 for wlb-worker");
	if ((unsigned)options->fp8 > WLB_FP8_MXFP8)
		return wlb_fail(error, "fp8 is %d: it must be one of enum wlb_fp8", (int)options->fp8);
	if (options->trainer == WLB_COST_WORKER && options->fp8 != WLB_FP8_NONE)
		return wlb_fail(error, "fp8 must be WLB_FP8_NONE for wlb-worker, which has no products in 8 bits");
	if (options->gradient_bytes != 2 && options->gradient_bytes != 4 && options->gradient_bytes != 8)
		return wlb_fail(error, "gradient_bytes is %d: it must be 2, 4 or 8", options->gradient_bytes);
	return 0;
}
