#include "planner/automatic.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/model_config.h"
#include "planner/length_list.h"
#include "planner/lengths_sample.h"
#include "planner/machine_choose.h"
#include "planner/search.h"

static int most_ranks(const struct wlb_nodes *nodes)
{
	int most = 0;
	for (int n = 0; n < nodes->count; n++)
		most = wlb_nodes_ranks_on(nodes, n) > most ? wlb_nodes_ranks_on(nodes, n) : most;
	return most;
}

static int read_lengths(const struct wlb_auto_request *request, struct wlb_length_list *list, struct wlb_error *error)
{
	char path[4096];
	if (request->blend != NULL)
		return wlb_blend_sample(request->blend, list, error) < 0 ? wlb_fail_in(error, "--data-path") : 0;
	if (request->lengths == NULL) /* of wlb-worker the last token of a document is a target alone */
		return wlb_length_list_add(list, request->seq_length + (request->is_worker ? 1 : 0), error);
	if (snprintf(path, sizeof(path), "%s.idx", request->lengths) >= (int)sizeof(path))
		return wlb_fail(error, "--data-path %.60s...: the path is too long", request->lengths);
	if (wlb_length_list_sample_index(path, list, error) < 0)
		return wlb_fail_in(error, "--data-path");
	return list->total_tokens > 0 ? 0 : wlb_fail(error, "--data-path: %s has no token", path);
}

static int search(const struct wlb_auto_request *request, int dynamic, const int32_t *ranks_on,
                  struct wlb_length_list *list, struct wlb_auto *found, struct wlb_error *error)
{
	struct wlb_length_stream stream = {.list = list, .repeat = true};
	struct wlb_search_options options;
	wlb_search_options_init(&options, request->nodes.count, request->seq_length, request->global_batch);
	options.gpus_of_node = ranks_on;
	options.topology = request->topology;
	options.zero_stage = request->zero_stage > 0 ? request->zero_stage : options.zero_stage;
	options.max_length_ratio = request->max_length_ratio;
	options.max_tokens = request->max_tokens;
	options.least_micro_batches = request->least_micro_batches;
	options.sharding = request->sharding;
	options.dynamic = dynamic;
	options.fixed = request->fixed;
	options.fixed.ep = 1; /* nothing tells the trainer another */
	options.charge_limit = request->is_worker;
	if (request->is_worker)
		wlb_cost_options_worker(&options.cost, &found->machine);
	else if (wlb_trainer_file_apply(&request->trainer, NULL, &found->machine, &options.cost, error) < 0)
		return -1;
	options.cost.recompute_sets[0] = 0; /* as for ep */
	options.cost.halved_rows = request->halved_rows;
	if (request->is_worker && request->gradient_bytes > 0)
		options.cost.gradient_bytes = request->gradient_bytes;
	options.every_gpu = request->every_rank;
	options.prefer_every_gpu = 1;
	options.keep = WLB_AUTO_KEEP;
	found->result = wlb_plan_search(&found->model, &found->machine, &stream, &options, error);
	return found->result != NULL ? 0 : -1;
}

/* Searches with dynamic context parallelism, without it, or both, and keeps the shorter step. */
static int search_all(const struct wlb_auto_request *request, const int32_t *ranks_on, struct wlb_length_list *list,
                      struct wlb_auto *found, struct wlb_error *error)
{
	struct wlb_error unused;
	int rc = search(request, request->dynamic > 0, ranks_on, list, found, error);
	if (rc < 0 || request->dynamic >= 0)
		return rc;
	struct wlb_search_result *without = found->result;
	if (search(request, 1, ranks_on, list, found, &unused) == 0 &&
	    found->result->ranked[0].step_s < without->ranked[0].step_s) {
		wlb_search_free(without);
		return 0;
	}
	wlb_search_free(found->result);
	found->result = without;
	return 0;
}

/* Of the chosen plan: the forward pass of the step's documents three times, by the peak of its ranks. */
static double utilization(const struct wlb_auto_request *request, const struct wlb_length_list *list,
                          const struct wlb_auto *found)
{
	const struct wlb_candidate *best = &found->result->ranked[0];
	double flops = 0.0, tokens = best->tokens_per_s * best->step_s;
	for (size_t i = 0; i < list->count; i++) {
		int64_t whole = list->tokens[i] / request->seq_length, rest = list->tokens[i] % request->seq_length;
		flops += (double)whole * wlb_cost_document(&found->model, request->seq_length);
		flops += rest > 0 ? wlb_cost_document(&found->model, rest) : 0.0;
	}
	return 3.0 * flops / (double)list->total_tokens * tokens /
	       (best->step_s * best->gpus * found->machine.peak_flops);
}

static int same_layout(const struct wlb_plan *a, const struct wlb_plan *b)
{
	return memcmp(&a->layout, &b->layout, sizeof(a->layout)) == 0;
}

/* The layout after the best: other settings of the same one tell less. */
static const struct wlb_candidate *runner_up(const struct wlb_search_result *result)
{
	for (size_t i = 1; i < result->ranked_count; i++)
		if (!same_layout(&result->ranked[i].plan, &result->ranked[0].plan))
			return &result->ranked[i];
	return NULL;
}

static void explain(const struct wlb_auto_request *request, struct wlb_auto *found)
{
	const struct wlb_search_result *r = found->result;
	const struct wlb_candidate *next = runner_up(r);
	const char *of = request->is_worker ? "" : " for ", *trainer = request->is_worker ? "" : request->trainer.name;
	char layout[64] = "", compared[128] = "", slower[128] = "", least[32] = "the least";
	if (next != NULL) {
		wlb_layout_format(&next->plan.layout, layout, sizeof(layout));
		snprintf(compared, sizeof(compared), "; %s would take %.3g s", layout, next->step_s);
	}
	if (found->machine_from == wlb_machine_slower)
		snprintf(slower, sizeof(slower), ", the slowest of the types %.80s", request->gpu_types);
	if (r->preferred)
		snprintf(least, sizeof(least), "%.2g%% above the least",
		         100.0 * (r->ranked[0].step_s / r->fastest_s - 1.0));
	snprintf(found->reason, sizeof(found->reason),
	         "%s of %lld plans on %s%s%s%s: %.3g s a step%s; %lld plan%s not fit in memory", least,
	         (long long)r->tried, found->machine.name, slower, of, trainer, r->ranked[0].step_s, compared,
	         (long long)r->no_memory, r->no_memory == 1 ? " does" : "s do");
}

int64_t wlb_auto_windows(const struct wlb_plan *plan, int32_t global_batch)
{
	int64_t bins = (int64_t)plan->micro_batches * plan->layout.dp;
	return (global_batch + bins - 1) / bins;
}

int wlb_auto_find(const struct wlb_auto_request *request, struct wlb_auto *found, struct wlb_error *error)
{
	struct wlb_length_list list = {0};
	int most = most_ranks(&request->nodes), rc = -1;
	enum wlb_model_use use = request->is_worker ? WLB_MODEL_TO_TRAIN : WLB_MODEL_TO_PLAN;
	int32_t *ranks_on = calloc((size_t)request->nodes.count + 1, sizeof(*ranks_on));
	if (ranks_on == NULL)
		return wlb_fail(error, "out of memory for %d nodes", request->nodes.count);
	for (int n = 0; n < request->nodes.count; n++)
		ranks_on[n] = wlb_nodes_ranks_on(&request->nodes, n);
	if (wlb_model_config_read(request->model, use, &found->model, error) == 0 &&
	    wlb_machine_choose(request->machine, request->gpu_types, most, &found->machine, &found->machine_from,
	                       error) == 0 &&
	    read_lengths(request, &list, error) == 0) {
		found->machine.gpus_per_node = most;
		if (request->element_bytes > 0)
			found->machine.element_bytes = request->element_bytes;
		if (request->files_are_read != NULL)
			request->files_are_read();
		rc = search_all(request, ranks_on, &list, found, error);
	}
	if (rc == 0) {
		found->micro_batch_windows = wlb_auto_windows(&found->result->ranked[0].plan, request->global_batch);
		found->utilization = utilization(request, &list, found);
		explain(request, found);
	}
	wlb_length_list_free(&list);
	free(ranks_on);
	return rc;
}

void wlb_auto_free(struct wlb_auto *found)
{
	wlb_search_free(found->result);
	*found = (struct wlb_auto){0};
}
