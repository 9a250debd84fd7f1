#include "planner/cli/plan/json.h"

#include <stdio.h>

#include "common/json_text.h"
#include "planner/cli/plan/time.h"

const char *wlb_head_stages_name(const struct wlb_plan *plan)
{
	return plan->shared_head ? "all" : "last";
}

void wlb_recompute_format(const struct wlb_plan *plan, char *text, size_t size)
{
	wlb_recompute_set_format(plan->recompute, text, size);
	if (plan->recompute == WLB_RECOMPUTE_FULL && plan->recompute_layers > 0)
		snprintf(text, size, "full of %d layer%s a chunk", plan->recompute_layers,
		         plan->recompute_layers == 1 ? "" : "s");
}

json_t *wlb_plan_to_json(const struct wlb_plan *plan)
{
	int less = plan->account_for_embedding > 1 || plan->account_for_loss > 1;
	char recompute[WLB_RECOMPUTE_TEXT_BYTES];
	wlb_recompute_set_format(plan->recompute, recompute, sizeof(recompute));
	return json_pack("{s:{s:i, s:i, s:i, s:i}, s:i, s:i, s:i, s:s, s:i, s:b, s:b, s:i, s:i, s:s, s:i}", "layout",
	                 "tp", plan->layout.tp, "cp", plan->layout.cp, "pp", plan->layout.pp, "dp", plan->layout.dp,
	                 "micro_batches", (int)plan->micro_batches, "interleave", (int)plan->interleave, "zero_stage",
	                 (int)plan->zero_stage, "recompute", recompute, "recompute_layers", (int)plan->recompute_layers,
	                 "account_for_embedding", !less && plan->account_for_embedding, "account_for_loss",
	                 !less && plan->account_for_loss, "first_stage_less_layers",
	                 less ? plan->account_for_embedding : 0, "last_stage_less_layers",
	                 less ? plan->account_for_loss : 0, "head_stages", wlb_head_stages_name(plan), "ep",
	                 plan->ep > 1 ? (int)plan->ep : 1);
}

json_t *wlb_memory_to_json(const struct wlb_memory *m)
{
	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "weights", m->weights,
	                 "gradients", m->gradients, "optimizer", m->optimizer, "activations", m->activations, "logits",
	                 m->logits, "buffers", m->buffers, "allocated", m->allocated, "fragmentation", m->fragmentation,
	                 "runtime", m->runtime, "reserved", m->reserved, "saved", m->saved, "saved_local",
	                 m->saved_local);
}

/* Includes the time if it was simulated, and the missing memory if it does not fit. */
static json_t *candidate_to_json(const struct wlb_candidate *candidate)
{
	json_t *object = wlb_plan_to_json(&candidate->plan);
	if (object == NULL)
		return NULL;
	int rc = json_object_set_new(object, "gpus", json_integer(candidate->gpus));
	rc |= json_object_set_new(object, "micro_batch_tokens", json_integer(candidate->micro_batch_tokens));
	rc |= json_object_set_new(object, "memory_bytes", wlb_memory_to_json(&candidate->memory));
	rc |= json_object_set_new(object, "fullest_stage", json_integer(candidate->stage));
	if (candidate->step_s > 0.0) {
		rc |= json_object_set_new(object, "time", wlb_time_to_json(&candidate->time));
		rc |= json_object_set_new(object, "tokens_per_s", json_real(candidate->tokens_per_s));
		rc |= json_object_set_new(object, "mfu", json_real(candidate->utilization));
	}
	if (candidate->missing_bytes > 0.0)
		rc |= json_object_set_new(object, "missing_bytes", json_real(candidate->missing_bytes));
	if (rc == 0)
		return object;
	json_decref(object);
	return NULL;
}

static json_t *candidates_to_json(const struct wlb_candidate *candidates, size_t count)
{
	json_t *list = json_array();
	for (size_t i = 0; list != NULL && i < count; i++)
		if (json_array_append_new(list, candidate_to_json(&candidates[i])) < 0) {
			json_decref(list);
			list = NULL;
		}
	return list;
}

/* [{"node": name, "gpu": number}, ...] */
static json_t *gpus_to_json(const struct wlb_plan_input *input, const int32_t *nodes, const int32_t *gpus,
                            int32_t count)
{
	json_t *list = json_array();
	char text[16];
	for (int32_t i = 0; list != NULL && i < count; i++) {
		json_t *gpu = json_pack("{s:o, s:i}", "node",
		                        wlb_json_text(wlb_plan_node_name(input, nodes[i], text, sizeof(text))), "gpu",
		                        (int)gpus[i]);
		if (json_array_append_new(list, gpu) < 0) {
			json_decref(list);
			list = NULL;
		}
	}
	return list;
}

/* [{"option": "--gradient-type bfloat16", "freed_bytes": 1e9, "plan": {...}}, ...] */
static json_t *choices_to_json(const struct wlb_plan_choices *choices)
{
	json_t *list = json_array();
	for (int i = 0; list != NULL && i < choices->count; i++) {
		json_t *choice = json_pack("{s:s, s:f, s:o}", "option", choices->found[i].option, "freed_bytes",
		                           choices->found[i].freed_bytes, "plan",
		                           candidate_to_json(&choices->found[i].candidate));
		if (json_array_append_new(list, choice) < 0) {
			json_decref(list);
			list = NULL;
		}
	}
	return list;
}

json_t *wlb_explanation_to_json(const struct wlb_explanation *why)
{
	const struct wlb_layout *l = &why->asked;
	json_t *object = json_pack("{s:{s:i, s:i, s:i, s:i}, s:b}", "asked", "tp", l->tp, "cp", l->cp, "pp", l->pp,
	                           "dp", l->dp, "runs", why->can_run);
	int rc = object == NULL ? -1 : 0;
	if (rc == 0 && why->candidate.step_s > 0.0)
		rc = json_object_set_new(object, "plan", candidate_to_json(&why->candidate));
	if (rc == 0 && !why->can_run)
		rc = json_object_set_new(object, "reason", json_string(why->reason));
	if (rc == 0)
		return object;
	json_decref(object);
	return NULL;
}

/* Adds how many plans the search tried, discarded and simulated. */
static int set_counts(json_t *object, const struct wlb_search_result *result)
{
	const struct {
		const char *name;
		int64_t count;
	} counts[] = {{"gpus_usable", result->gpus},    {"tried", result->tried},
	              {"no_memory", result->no_memory}, {"pruned", result->pruned},
	              {"simulated", result->simulated}, {"unexplored", result->unexplored}};
	int rc = 0;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		rc |= json_object_set_new(object, counts[i].name, json_integer(counts[i].count));
	return rc;
}

json_t *wlb_search_to_json(const struct wlb_plan_request *request, const struct wlb_plan_input *input,
                           const struct wlb_search_result *result, const struct wlb_plan_findings *findings)
{
	const struct wlb_candidate *best = &result->ranked[0];
	json_t *object = candidate_to_json(best);
	if (object == NULL)
		return NULL;
	int rc = set_counts(object, result);
	rc |= json_object_set_new(object, "parameters", json_integer(wlb_model_parameters(&input->model)));
	rc |= json_object_set_new(object, "active_parameters",
	                          json_integer(wlb_model_active_parameters(&input->model)));
	rc |= json_object_set_new(object, "gpu", json_string(input->machine.name));
	rc |= json_object_set_new(object, "mfu_counts",
	                          json_string(request->trainer.full_attention ? "full" : "causal"));
	rc |= json_object_set_new(object, "fp8", json_boolean(input->cost.fp8 != WLB_FP8_NONE));
	rc |= json_object_set_new(object, "step_s", json_real(best->step_s));
	rc |= json_object_set_new(object, "trainer", json_string(input->trainer.name));
	rc |= json_object_set_new(object, "uncertainty", wlb_near_to_json(&findings->near));
	rc |= json_object_set_new(object, "fastest_s", json_real(result->fastest_s));
	rc |= json_object_set_new(object, "preferred", json_boolean(result->preferred));
	rc |= json_object_set_new(object, "next_best",
	                          candidates_to_json(result->ranked + 1, result->ranked_count - 1));
	rc |= json_object_set_new(object, "misfits", candidates_to_json(result->misfits, result->misfit_count));
	rc |= json_object_set_new(object, "idle",
	                          gpus_to_json(input, result->idle_node, result->idle_gpu, result->idle));
	rc |= json_object_set_new(object, "ranks",
	                          gpus_to_json(input, result->rank_node, result->rank_gpu, result->ranks));
	rc |= json_object_set_new(object, "choices", choices_to_json(&findings->choices));
	if (findings->explained)
		rc |= json_object_set_new(object, "explain", wlb_explanation_to_json(&findings->why));
	if (rc == 0)
		return object;
	json_decref(object);
	return NULL;
}
