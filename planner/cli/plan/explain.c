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

void wlb_explain_held(const struct wlb_plan_request *request, struct wlb_plan_input *input,
                      const struct wlb_search_fixed *held, struct wlb_explanation *why)
{
	struct wlb_error reason = {""};
	struct wlb_search_result *found = wlb_plan_input_search(request, input, held, 1, &reason);
	why->can_run = found != NULL;
	if (found != NULL)
		why->candidate = found->ranked[0];
	else
		snprintf(why->reason, sizeof(why->reason), "%s", reason.message);
	wlb_search_free(found);
}

int wlb_explain(const struct wlb_plan_request *request, struct wlb_plan_input *input,
                const struct wlb_search_fixed *fixed, const char *layout, const struct wlb_search_result *result,
                struct wlb_explanation *why, struct wlb_error *error)
{
	*why = (struct wlb_explanation){0};
	if (parse(layout, &why->asked, error) < 0)
		return -1;
	struct wlb_search_fixed held = *fixed;
	held.tp = why->asked.tp;
	held.cp = why->asked.cp;
	held.pp = why->asked.pp;
	held.dp = why->asked.dp;
	wlb_explain_held(request, input, &held, why);
	const struct wlb_layout *best = &result->ranked[0].plan.layout, *this = &why->candidate.plan.layout;
	if (why->can_run && memcmp(best, this, sizeof(*best)) == 0)
		why->candidate = result->ranked[0];
	return 0;
}
