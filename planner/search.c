#include "planner/search.h"

#include <math.h>

#include "planner/samples.h"
#include "planner/spans.h"

/* In the first steps of a stream no documents have waited yet. A larger batch is treated as several of WINDOWS. Few
 * documents do not tell how much of the work is attention, since most of that is in the few longest ones. */
enum { SKIPPED_STEPS = 4, LEAST_STEPS = 8, MOST_STEPS = 512, WINDOWS = 256, DOCUMENTS = 4096 };

/* Returns the number of steps that have DOCUMENTS documents. */
static size_t steps_to_take(const struct wlb_length_list *list, const struct wlb_packer_options *packing)
{
	double mean_tokens = list->count > 0 ? (double)list->total_tokens / (double)list->count : 1.0;
	double step_tokens = (double)packing->seq_length * (double)packing->micro_batches;
	double steps = ceil(DOCUMENTS * mean_tokens / step_tokens);
	return (size_t)fmax(LEAST_STEPS, fmin(steps, MOST_STEPS));
}

/* Tokens of the mean step, by those of all windows of a batch. A step ends where the next document would not fit: how
 * many tokens that leaves does not depend on how many windows there are. */
static double fill_of(const struct wlb_samples *samples, int32_t windows, const struct wlb_search_options *options)
{
	double all = (double)samples->count * (double)options->seq_length * windows;
	return 1.0 - (1.0 - (double)samples->arrived_tokens / all) * windows / options->global_batch;
}

/* Takes the steps that the search is made for. */
static int sample(const struct wlb_model *model, struct wlb_length_stream *documents,
                  const struct wlb_search_options *options, const struct wlb_packer_options *packing,
                  struct wlb_samples *samples, struct wlb_error *error)
{
	struct wlb_length_list spans = {0};
	struct wlb_length_stream of_spans = {.list = &spans, .repeat = true}, *stream = documents;
	int rc = 0;
	if (options->cost.trainer == WLB_COST_WORKER) {
		rc = wlb_spans_of_documents(documents->list, options->seq_length, &spans, error);
		stream = &of_spans;
	}
	if (rc == 0)
		rc = wlb_samples_take(samples, model, stream, packing, 1, SKIPPED_STEPS,
		                      steps_to_take(stream->list, packing), error);
	wlb_length_list_free(&spans);
	return rc;
}

struct wlb_search_result *wlb_plan_search(const struct wlb_model *model, const struct wlb_machine *machine,
                                          struct wlb_length_stream *stream, const struct wlb_search_options *options,
                                          struct wlb_error *error)
{
	struct wlb_packer_options packing;
	struct wlb_search_options own = *options;
	struct wlb_samples samples = {0};
	struct wlb_search_result *result = NULL;
	wlb_packer_options_init(&packing, own.seq_length, own.global_batch < WINDOWS ? own.global_batch : WINDOWS);
	packing.max_length_ratio = own.max_length_ratio;
	if (sample(model, stream, &own, &packing, &samples, error) == 0) {
		own.sample = samples.steps;
		own.samples = samples.count;
		if (own.cost.trainer == WLB_COST_WORKER) /* others cut the last document of a batch */
			own.batch_fill = fill_of(&samples, packing.micro_batches, &own);
		result = wlb_search(model, machine, &own, error);
	}
	wlb_samples_free(&samples);
	return result;
}
