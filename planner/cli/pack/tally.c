#include "planner/cli/pack/tally.h"

#include <stdlib.h>
#include <string.h>

int wlb_pack_tally_add(struct wlb_pack_tally *tally, const struct wlb_step *step, double cpu_s, struct wlb_error *error)
{
	if (tally->steps == tally->capacity) {
		int64_t capacity = 2 * tally->capacity + 256;
		double *grown = reallocarray(tally->imbalances, (size_t)capacity, sizeof(*grown));
		if (grown == NULL)
			return wlb_fail(error, "out of memory for the measures of %lld steps", (long long)capacity);
		tally->imbalances = grown;
		tally->capacity = capacity;
	}
	tally->imbalances[tally->steps++] = wlb_step_imbalance(step);
	for (size_t i = 0; i < step->count; i++) {
		const struct wlb_packed_span *span = &step->spans[i];
		tally->waited_token_steps += (double)span->span.tokens * span->waited_steps;
		if (span->waited_steps > tally->delay_max_steps)
			tally->delay_max_steps = span->waited_steps;
	}
	tally->tokens_packed += step->tokens;
	tally->cuts += step->cuts;
	tally->cpu_s += cpu_s;
	return 0;
}

void wlb_pack_tally_free(struct wlb_pack_tally *tally)
{
	free(tally->imbalances);
	memset(tally, 0, sizeof(*tally));
}

static int less_first(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static int summarize_imbalance(struct wlb_pack_summary *summary, const double *imbalances, struct wlb_error *error)
{
	size_t steps = (size_t)summary->steps;
	summary->imbalance_mean = summary->imbalance_p99 = summary->imbalance_max = 1.0;
	if (steps == 0)
		return 0;
	double *sorted = reallocarray(NULL, steps, sizeof(*sorted));
	if (sorted == NULL)
		return wlb_fail(error, "out of memory for the measures of %zu steps", steps);
	memcpy(sorted, imbalances, steps * sizeof(*sorted));
	qsort(sorted, steps, sizeof(*sorted), less_first);
	double sum = 0.0;
	for (size_t i = 0; i < steps; i++)
		sum += sorted[i];
	summary->imbalance_mean = sum / (double)steps;
	summary->imbalance_p99 = sorted[steps * 99 / 100];
	summary->imbalance_max = sorted[steps - 1];
	free(sorted);
	return 0;
}

int wlb_pack_summarize(const struct wlb_pack_tally *tally, const struct wlb_length_list *list,
                       const struct wlb_packer_options *options, struct wlb_pack_summary *summary,
                       struct wlb_error *error)
{
	*summary = (struct wlb_pack_summary){
		.options = *options,
		.steps = tally->steps,
		.delay_max_steps = tally->delay_max_steps,
		.documents = (int64_t)list->count,
		.tokens_in = list->total_tokens,
		.tokens_packed = tally->tokens_packed,
		.tokens_held = list->total_tokens - tally->tokens_packed,
		.cuts = tally->cuts,
	};
	if (tally->tokens_packed > 0)
		summary->delay_mean_steps = tally->waited_token_steps / (double)tally->tokens_packed;
	if (tally->steps > 0)
		summary->pack_us_per_step = 1e6 * tally->cpu_s / (double)tally->steps;
	return summarize_imbalance(summary, tally->imbalances, error);
}
