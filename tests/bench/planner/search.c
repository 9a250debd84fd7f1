#include "tests/bench/planner/search.h"

#include <stdlib.h>

#include "tests/bench/planner/options.h"

enum { DOCUMENTS = 64 }; /* of the sample, each of one window */

/* Returns the least step time of the plans that have what is fixed, 0 where there is none. */
static double search_s(const struct published_row *row, const struct wlb_machine *machine,
                       const struct wlb_search_options *options)
{
	struct wlb_error error;
	struct wlb_search_result *result = wlb_search(&row->model, machine, options, &error);
	double fastest_s = result != NULL ? result->fastest_s : 0.0;
	wlb_search_free(result);
	return fastest_s;
}

static struct wlb_search_fixed told(const struct published_row *row)
{
	const struct wlb_layout *l = &row->layout;
	return (struct wlb_search_fixed){
		.tp = l->tp,
		.cp = l->cp,
		.pp = l->pp,
		.dp = l->dp,
		.ep = row->ep,
		.interleave = row->interleave,
		.micro_batch_windows = row->micro_batch_windows,
		.recompute = row->recompute,
		.recompute_layers = row->recompute == WLB_RECOMPUTE_FULL ? row->recompute_layers : 0,
		.account_for_embedding = -1,
		.account_for_loss = -1,
	};
}

void bench_search(const struct published_row *row, const struct wlb_machine *machine, double *told_s, double *found_s)
{
	struct wlb_machine rated = *machine;
	struct wlb_search_options options;
	struct wlb_packed_span spans[DOCUMENTS];
	for (int i = 0; i < DOCUMENTS; i++)
		spans[i] = (struct wlb_packed_span){.span = {.document = i, .tokens = row->window_tokens},
		                                    .micro_batch = i};
	const struct wlb_step sample = {.spans = spans, .count = DOCUMENTS, .micro_batches = DOCUMENTS};
	int32_t node = machine->gpus_per_node, gpus = wlb_layout_ranks(&row->layout);
	if (gpus < node)
		rated.gpus_per_node = node = gpus;
	wlb_search_options_init(&options, gpus / node, row->window_tokens, row->batch_windows);
	bench_options(row, &rated, &options.cost);
	options.sample = &sample;
	options.samples = 1;
	options.zero_stage = row->zero_stage;
	options.keep = 1;
	options.fixed = told(row);
	*told_s = search_s(row, &rated, &options);
	options.fixed = (struct wlb_search_fixed){.recompute = -1, .account_for_embedding = -1, .account_for_loss = -1};
	*found_s = *told_s > 0.0 ? search_s(row, &rated, &options) : 0.0;
}
