#include "planner/cli/plan/explain.h"

#include <stdio.h>
#include <string.h>

static int parse(const char *text, struct wlb_layout *layout, struct wlb_error *error)
{
	struct wlb_policy policy;
	if (wlb_policy_parse(text, &policy, error) < 0)
		return wlb_fail_in(error, "--explain");
	if (policy.kind != WLB_POLICY_FIXED)
		return wlb_fail(error, "--explain '%.60s': must be a layout, such as tp=8,cp=1,pp=4", text);
	*layout = policy.fixed;
	return 0;
}

int wlb_explain(const struct wlb_plan_request *request, struct wlb_plan_input *input,
                const struct wlb_search_fixed *fixed, const char *layout, const struct wlb_search_result *result,
                struct wlb_explanation *why, struct wlb_error *error)
{
	struct wlb_error reason = {""};
	*why = (struct wlb_explanation){0};
	if (parse(layout, &why->asked, error) < 0)
		return -1;
	struct wlb_search_fixed held = *fixed;
	held.tp = why->asked.tp;
	held.cp = why->asked.cp;
	held.pp = why->asked.pp;
	held.dp = why->asked.dp;
	struct wlb_search_result *found = wlb_plan_input_search(request, input, &held, 1, &reason);
	if (found == NULL) {
		snprintf(why->reason, sizeof(why->reason), "%s", reason.message);
		return 0;
	}
	why->can_run = 1;
	why->candidate = found->ranked[0];
	const struct wlb_layout *best = &result->ranked[0].plan.layout, *this = &why->candidate.plan.layout;
	if (memcmp(best, this, sizeof(*best)) == 0)
		why->candidate = result->ranked[0];
	wlb_search_free(found);
	return 0;
}
