#include "planner/search.h"

#include <math.h>

#include "planner/samples.h"

/* In the first steps of a stream no documents have waited yet. A larger batch is treated as several of WINDOWS. */
enum { SKIPPED_STEPS = 4, STEPS = 8, WINDOWS = 256 };

static double work_of(const struct wlb_step *step)
{
	double work = 0.0;
	for (int32_t b = 0; b < step->micro_batches; b++)
		work += step->loads[b].work;
	return work;
}

/* Long documents are delayed and packed together, so steps differ: returns the one whose work per token is nearest to
 * the mean. */
static const struct wlb_step *typical_step(const struct wlb_samples *samples)
{
	const struct wlb_step *typical = &samples->steps[0];
	double work = 0.0, tokens = 0.0, nearest = INFINITY;
	for (size_t i = 0; i < samples->count; i++) {
		work += work_of(&samples->steps[i]);
		tokens += (double)samples->steps[i].tokens;
	}
	for (size_t i = 0; i < samples->count; i++) {
		const struct wlb_step *step = &samples->steps[i];
		double off = fabs(work_of(step) / fmax((double)step->tokens, 1.0) - work / tokens);
		if (off < nearest) {
			nearest = off;
			typical = step;
		}
	}
	return typical;
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
	if (wlb_samples_take(&samples, model, stream, &packing, SKIPPED_STEPS, STEPS, error) == 0) {
		own.sample = typical_step(&samples);
		own.samples = 1;
		result = wlb_search(model, machine, &own, error);
	}
	wlb_samples_free(&samples);
	return result;
}
