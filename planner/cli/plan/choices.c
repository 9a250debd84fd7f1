#include "planner/cli/plan/choices.h"

#include <math.h>
#include <stdio.h>

/* What a choice changes. */
struct change {
	char option[48]; /* "": the choice cannot be made */
	struct wlb_plan_request request;
	struct wlb_search_fixed fixed;
	struct wlb_cost_options cost;
	struct wlb_plan plan; /* that of the best, with the choice */
	int64_t tokens;       /* of its largest micro-batch */
};

enum choice { GRADIENT_TYPE, RELEASE, ZERO_2, ZERO_3, SELECTIVE, MICRO_BATCH, TP };

static void set_gradient_type(struct change *c)
{
	if (c->cost.gradient_bytes <= 2)
		return;
	c->cost.gradient_bytes = 2;
	snprintf(c->option, sizeof(c->option), "--gradient-type bfloat16");
}

static void set_release(struct change *c)
{
	if (c->cost.release_activations || c->request.trainer.release_activations)
		return;
	c->cost.release_activations = 1;
	snprintf(c->option, sizeof(c->option), "--release-activations");
}

static void set_zero_stage(struct change *c, int stage)
{
	if (c->request.zero_stage >= stage || c->plan.layout.pp > 1)
		return;
	c->request.zero_stage = c->plan.zero_stage = stage;
	snprintf(c->option, sizeof(c->option), "--zero-stage %d", stage);
}

static void set_selective(struct change *c)
{
	if (c->fixed.recompute >= 0 || c->plan.recompute != WLB_RECOMPUTE_FULL)
		return;
	c->fixed.recompute = c->plan.recompute = WLB_RECOMPUTE_SELECTIVE;
	c->plan.recompute_layers = 0;
	snprintf(c->option, sizeof(c->option), "--recompute selective");
}

static void set_micro_batch(struct change *c)
{
	int64_t micro_batches = (int64_t)c->plan.micro_batches * c->plan.layout.dp;
	int64_t windows = micro_batches > 0 ? c->request.global_batch / micro_batches : 0;
	if (windows < 2)
		return;
	c->fixed.micro_batch_windows = (int32_t)(windows / 2);
	c->plan.micro_batches *= 2;
	c->tokens = (c->tokens + 1) / 2;
	snprintf(c->option, sizeof(c->option), "--micro-batch-size %d", c->fixed.micro_batch_windows);
}

/* Twice the tensor parallelism, with half of the replicas. */
static void set_tp(struct change *c)
{
	if (c->plan.layout.tp == 0 || c->plan.layout.dp % 2 != 0)
		return;
	c->fixed.tp = c->plan.layout.tp *= 2;
	c->fixed.dp = c->plan.layout.dp /= 2;
	c->plan.micro_batches *= 2;
	snprintf(c->option, sizeof(c->option), "--tp %d", c->fixed.tp);
}

static void change(struct change *c, enum choice choice)
{
	switch (choice) {
	case GRADIENT_TYPE:
		set_gradient_type(c);
		break;
	case RELEASE:
		set_release(c);
		break;
	case ZERO_2:
	case ZERO_3:
		set_zero_stage(c, choice == ZERO_2 ? 2 : 3);
		break;
	case SELECTIVE:
		set_selective(c);
		break;
	case MICRO_BATCH:
		set_micro_batch(c);
		break;
	case TP:
		set_tp(c);
		break;
	}
}

/* Returns what the stage that needs the most needs less than `best` needs. */
static double freed_bytes(const struct wlb_plan_input *input, const struct change *c, const struct wlb_candidate *best)
{
	int64_t longest = c->tokens < c->request.seq_length ? c->tokens : c->request.seq_length;
	double most = 0.0;
	if (wlb_plan_check(&c->plan, &input->model, NULL) < 0)
		return 0.0;
	for (int32_t stage = 0; stage < c->plan.layout.pp; stage++)
		most = fmax(most, wlb_memory_stage_of(&c->plan, &input->model, &input->machine, &c->cost, stage,
		                                      c->tokens, longest)
		                          .reserved);
	return best->memory.reserved - most;
}

/* Searches with what was changed, and adds the fastest plan. */
static void try_change(struct wlb_plan_input *input, const struct change *c, const struct wlb_candidate *best,
                       struct wlb_plan_choices *choices)
{
	const struct wlb_cost_options before = input->cost;
	struct wlb_error error;
	input->cost = c->cost;
	struct wlb_search_result *result = wlb_plan_input_search(&c->request, input, &c->fixed, 1, &error);
	input->cost = before;
	if (result != NULL) {
		struct wlb_plan_choice *found = &choices->found[choices->count++];
		snprintf(found->option, sizeof(found->option), "%s", c->option);
		found->candidate = result->ranked[0];
		found->freed_bytes = best != NULL ? freed_bytes(input, c, best) : 0.0;
	}
	wlb_search_free(result);
}

static int recomputes(const struct wlb_plan_input *input, const struct wlb_plan *plan)
{
	if (plan->recompute == WLB_RECOMPUTE_SELECTIVE)
		return input->cost.unfused_attention;
	return plan->recompute != WLB_RECOMPUTE_NONE;
}

void wlb_plan_choices_find(const struct wlb_plan_request *request, struct wlb_plan_input *input,
                           const struct wlb_search_fixed *fixed, const struct wlb_candidate *best,
                           struct wlb_plan_choices *choices)
{
	*choices = (struct wlb_plan_choices){.count = 0};
	if (input->cost.trainer == WLB_COST_WORKER || (best != NULL && !recomputes(input, &best->plan)))
		return;
	for (int choice = GRADIENT_TYPE; choice <= TP; choice++) {
		struct change c = {.request = *request, .fixed = *fixed, .cost = input->cost};
		if (best != NULL) {
			c.plan = best->plan;
			c.tokens = best->micro_batch_tokens;
		}
		if (best != NULL && choice >= ZERO_2) { /* these do not look for another layout */
			c.fixed.tp = best->plan.layout.tp;
			c.fixed.cp = best->plan.layout.cp;
			c.fixed.pp = best->plan.layout.pp;
			c.fixed.dp = best->plan.layout.dp;
			c.fixed.ep = best->plan.ep;
		}
		change(&c, choice);
		if (c.option[0] != '\0')
			try_change(input, &c, best, choices);
	}
}
