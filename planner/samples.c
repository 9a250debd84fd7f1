#include "planner/samples.h"

#include <stdlib.h>
#include <string.h>

#include "planner/batches.h"

static void *copy_of(const void *from, size_t count, size_t size)
{
	void *copy = calloc(count + 1, size);
	if (copy != NULL && count > 0)
		memcpy(copy, from, count * size);
	return copy;
}

/* Makes a micro-batch of each `windows` micro-batches of a step. */
static void merge(struct wlb_step *step, struct wlb_packed_span *spans, struct wlb_load *loads, int32_t windows)
{
	step->micro_batches /= windows;
	for (size_t i = 0; i < step->count; i++)
		spans[i].micro_batch /= windows;
	for (int32_t b = 0; b < step->micro_batches; b++) {
		struct wlb_load sum = {0};
		for (int32_t w = 0; w < windows; w++) {
			sum.tokens += loads[b * windows + w].tokens;
			sum.work += loads[b * windows + w].work;
		}
		loads[b] = sum;
	}
}

static int keep(struct wlb_samples *samples, const struct wlb_step *step, int32_t merged, struct wlb_error *error)
{
	struct wlb_step *copy = &samples->steps[samples->count++];
	struct wlb_packed_span *spans = copy_of(step->spans, step->count, sizeof(*step->spans));
	struct wlb_load *loads = copy_of(step->loads, (size_t)step->micro_batches, sizeof(*step->loads));
	*copy = *step;
	copy->spans = spans;
	copy->loads = loads;
	if (spans == NULL || loads == NULL)
		return wlb_fail(error, "out of memory for a step of %zu documents", step->count);
	merge(copy, spans, loads, merged);
	return 0;
}

static int take(struct wlb_samples *samples, struct wlb_batches *batches, struct wlb_packer *packer, int32_t merged,
                size_t skip, size_t count, struct wlb_error *error)
{
	double before = 0.0;
	for (size_t k = 0; k < skip + count; k++) {
		if (wlb_batches_next(batches, error) < 0)
			return -1;
		const struct wlb_step *step = wlb_packer_next(packer, batches->spans, batches->count, error);
		if (step == NULL || (k >= skip && keep(samples, step, merged, error) < 0))
			return -1;
		samples->arrived_tokens += k >= skip ? batches->tokens : 0;
		samples->more_held_work = step->held_work - before;
		before = k < skip ? step->held_work : before;
	}
	return 0;
}

int wlb_samples_take(struct wlb_samples *samples, const struct wlb_model *model, struct wlb_length_stream *stream,
                     const struct wlb_packer_options *options, int32_t windows, size_t skip, size_t count,
                     struct wlb_error *error)
{
	struct wlb_batches batches;
	struct wlb_packer_options packed = *options;
	int32_t merged =
		options->strategy == WLB_STRATEGY_PLAIN || options->strategy == WLB_STRATEGY_FIXED ? windows : 1;
	packed.seq_length /= merged;
	packed.micro_batches *= merged;
	struct wlb_packer *packer = wlb_packer_new(model, &packed, error);
	if (packer == NULL)
		return -1;
	stream->taken = 0;
	wlb_batches_init(&batches, wlb_length_stream_next, stream, options->seq_length / windows,
	                 options->seq_length * options->micro_batches);
	samples->steps = calloc(count, sizeof(*samples->steps));
	int rc = samples->steps != NULL ? take(samples, &batches, packer, merged, skip, count, error)
	                                : wlb_fail(error, "out of memory for %zu steps", count);
	wlb_batches_free(&batches);
	wlb_packer_free(packer);
	return rc;
}

void wlb_samples_free(struct wlb_samples *samples)
{
	for (size_t i = 0; i < samples->count; i++) {
		free((void *)samples->steps[i].spans);
		free((void *)samples->steps[i].loads);
	}
	free(samples->steps);
	*samples = (struct wlb_samples){0};
}
