#include "planner/plan_record.h"

#include <string.h>

#include "common/json_text.h"

json_t *wlb_plan_record_candidate(const struct wlb_auto_request *request, const struct wlb_candidate *c)
{
	const struct wlb_layout *l = &c->plan.layout;
	char recompute[WLB_RECOMPUTE_TEXT_BYTES];
	wlb_recompute_set_format(c->plan.recompute, recompute, sizeof(recompute));
	json_t *object = json_pack("{s:{s:i, s:i, s:i, s:i}, s:i, s:i, s:I, s:s, s:f}", "layout", "tp", l->tp, "cp",
	                           l->cp, "pp", l->pp, "dp", l->dp, "interleave", (int)c->plan.interleave,
	                           "micro_batches", (int)c->plan.micro_batches, "micro_batch_size",
	                           (json_int_t)wlb_auto_windows(&c->plan, request->global_batch), "recompute",
	                           recompute, "memory_bytes", c->memory.reserved);
	if (object != NULL && c->plan.recompute_layers > 0)
		json_object_set_new(object, "recompute_layers", json_integer(c->plan.recompute_layers));
	if (object != NULL && c->plan.shared_head)
		json_object_set_new(object, "head_stages", json_string("all"));
	if (object != NULL && c->plan.dynamic_cp > 0)
		json_object_set_new(object, "packing", json_string("dynamic"));
	if (object != NULL && c->step_s > 0.0)
		json_object_set_new(object, "step_s", json_real(c->step_s));
	if (object != NULL && c->missing_bytes > 0.0)
		json_object_set_new(object, "missing_bytes", json_real(c->missing_bytes));
	return object;
}

/* Returns whether one of the first `count` candidates has the layout of candidate `count`. */
static int is_repeated(const struct wlb_candidate *candidates, size_t count)
{
	const struct wlb_layout *layout = &candidates[count].plan.layout;
	for (size_t i = 0; i < count; i++)
		if (memcmp(&candidates[i].plan.layout, layout, sizeof(*layout)) == 0)
			return 1;
	return 0;
}

/* Layouts from candidate `first` on, each once. */
static json_t *others_json(const struct wlb_auto_request *request, const struct wlb_candidate *candidates, size_t first,
                           size_t count)
{
	json_t *list = json_array();
	for (size_t i = first; i < count && json_array_size(list) < WLB_PLAN_RECORD_OTHERS; i++)
		if (!is_repeated(candidates, i))
			json_array_append_new(list, wlb_plan_record_candidate(request, &candidates[i]));
	return list;
}

json_t *wlb_plan_record(const struct wlb_auto_request *request, const struct wlb_auto *found)
{
	const struct wlb_search_result *r = found->result;
	json_t *record = wlb_plan_record_candidate(request, &r->ranked[0]);
	json_t *rest = json_pack(
		"{s:o, s:o, s:o, s:f, s:f, s:f, s:I, s:I, s:i, s:o, s:o}", "reason", wlb_json_text(found->reason),
		"machine", wlb_json_text(found->machine.name), "machine_from", wlb_json_text(found->machine_from),
		"memory_limit_bytes", found->machine.memory_bytes, "memory_margin_bytes",
		r->ranked[0].memory.reserved - r->ranked[0].memory.allocated, "utilization", found->utilization,
		"tried", (json_int_t)r->tried, "no_memory", (json_int_t)r->no_memory, "idle_ranks", (int)r->idle,
		"next", others_json(request, r->ranked, 1, r->ranked_count), "misfits",
		others_json(request, r->misfits, 0, r->misfit_count));
	if (record != NULL && rest != NULL && json_object_update(record, rest) == 0) {
		json_decref(rest);
		return record;
	}
	json_decref(record);
	json_decref(rest);
	return NULL;
}
