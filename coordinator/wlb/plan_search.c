#include "coordinator/wlb/plan_search.h"

#include "coordinator/wlb/plan_samples.h"

/* The first steps of a stream have no documents that waited yet. A larger batch looks like several of WINDOWS. */
enum { SKIPPED_STEPS = 4, SAMPLES = 2, WINDOWS = 256 };

struct wlb_search_result *wlb_plan_search(const struct wlb_plan_request *request, struct wlb_plan_input *input,
                                          int keep, struct wlb_error *error)
{
	struct wlb_packer_options packing;
	struct wlb_search_options options;
	struct wlb_samples samples = {0};
	struct wlb_search_result *result = NULL;
	wlb_packer_options_init(&packing, request->seq_length,
	                        request->global_batch < WINDOWS ? request->global_batch : WINDOWS);
	packing.max_length_ratio = request->max_length_ratio;
	wlb_search_options_init(&options, input->nodes, request->seq_length, request->global_batch);
	if (wlb_samples_take(&samples, input, &packing, SKIPPED_STEPS, SAMPLES, error) == 0) {
		options.gpus_of_node = input->gpus_of_node;
		options.topology = request->topology != NULL ? &input->topology.topology : NULL;
		options.max_length_ratio = request->max_length_ratio;
		options.zero_stage = request->zero_stage;
		options.sample = samples.steps;
		options.samples = samples.count;
		options.keep = keep;
		result = wlb_search(&input->model, &input->machine, &options, error);
	}
	wlb_samples_free(&samples);
	return result;
}
