#include "planner/cli/plan/choices.h"

/* Searches with other options of the cost, and adds the fastest plan where it is faster than `best`. */
static void try_choice(const struct wlb_plan_request *request, struct wlb_plan_input *input,
                       const struct wlb_search_fixed *fixed, const struct wlb_candidate *best, const char *option,
                       const struct wlb_cost_options *cost, struct wlb_plan_choices *choices)
{
	const struct wlb_cost_options before = input->cost;
	struct wlb_error error;
	input->cost = *cost;
	struct wlb_search_result *result = wlb_plan_input_search(request, input, fixed, 1, &error);
	input->cost = before;
	if (result != NULL && result->ranked[0].step_s < best->step_s)
		choices->found[choices->count++] = (struct wlb_plan_choice){option, result->ranked[0]};
	wlb_search_free(result);
}

void wlb_plan_choices_find(const struct wlb_plan_request *request, struct wlb_plan_input *input,
                           const struct wlb_search_fixed *fixed, const struct wlb_candidate *best,
                           struct wlb_plan_choices *choices)
{
	struct wlb_cost_options bfloat16 = input->cost, release = input->cost;
	bfloat16.gradient_bytes = 2;
	release.release_activations = 1;
	*choices = (struct wlb_plan_choices){.count = 0};
	if (input->cost.trainer == WLB_COST_WORKER || best->plan.recompute != WLB_RECOMPUTE_FULL)
		return;
	if (input->cost.gradient_bytes > 2)
		try_choice(request, input, fixed, best, "--gradient-type bfloat16", &bfloat16, choices);
	if (!input->cost.release_activations)
		try_choice(request, input, fixed, best, "--release-activations", &release, choices);
}
