#include "coordinator/wlb/run/plan_before.h"

#include "planner/plan_record.h"

static int same_split(const struct wlb_layout *before, const json_t *layout)
{
	return json_integer_value(json_object_get(layout, "tp")) == before->tp &&
	       json_integer_value(json_object_get(layout, "cp")) == before->cp &&
	       json_integer_value(json_object_get(layout, "pp")) == before->pp;
}

void wlb_run_plan_before(const struct wlb_layout *before, const struct wlb_auto_request *request, json_t *record)
{
	struct wlb_auto_request held = *request;
	struct wlb_auto found = {0};
	struct wlb_error error;
	if (before->tp == 0 || same_split(before, json_object_get(record, "layout")))
		return;
	held.fixed.tp = before->tp;
	held.fixed.cp = before->cp;
	held.fixed.pp = before->pp;
	held.every_rank = 0;
	json_t *plan = wlb_auto_find(&held, &found, &error) == 0
	                       ? wlb_plan_record_candidate(&held, &found.result->ranked[0])
	                       : json_pack("{s:{s:i, s:i, s:i, s:i}, s:s}", "layout", "tp", before->tp, "cp",
	                                   before->cp, "pp", before->pp, "dp", before->dp, "reason", error.message);
	if (plan != NULL)
		json_object_set_new(record, "before", plan);
	wlb_auto_free(&found);
}
