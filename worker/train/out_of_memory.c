#include "worker/train/out_of_memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Appends to the message; what does not fit is left out. */
static void add(struct wlb_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct wlb_error *error, const char *format, ...)
{
	size_t used = strlen(error->message);
	va_list values;
	va_start(values, format);
	vsnprintf(error->message + used, sizeof(error->message) - used, format, values);
	va_end(values);
}

/* Returns what the plan had predicted for this rank's stage, with micro-batches of the most tokens that are allowed, as
 * the planner charges them. */
static struct wlb_memory predicted(const struct wlb_trainer *t)
{
	const struct wlb_machine machine = {.element_bytes = (int32_t)wlb_dtype_bytes(t->device->compute)};
	struct wlb_cost_options options;
	wlb_cost_options_worker(&options, &machine);
	options.gradient_bytes = (int32_t)wlb_dtype_bytes(t->device->gradients);
	return wlb_memory_stage_of(&t->plan->split, &t->plan->model, &machine, &options, t->groups->coords.pp,
	                           t->plan->max_tokens, t->plan->max_tokens);
}

static void add_prediction(const struct wlb_trainer *t, struct wlb_error *error)
{
	const struct wlb_memory m = predicted(t);
	char layout[64];
	wlb_layout_format(&t->plan->split.layout, layout, sizeof(layout));
	add(error,
	    "; this rank has %.3f GB already; predicted for %s, stage %d, micro-batches of up to %lld tokens: %.3f GB "
	    "(weights %.3f, gradients %.3f, optimizer %.3f, activations %.3f, logits %.3f, buffers %.3f)",
	    1e-9 * (double)t->device->allocated_bytes, layout, t->groups->coords.pp, (long long)t->plan->max_tokens,
	    1e-9 * m.allocated, 1e-9 * m.weights, 1e-9 * m.gradients, 1e-9 * m.optimizer, 1e-9 * m.activations,
	    1e-9 * m.logits, 1e-9 * m.buffers);
}

/* Says what lowers the memory of a rank, the least expensive first. */
static void add_remedies(const struct wlb_trainer *t, struct wlb_error *error)
{
	const struct wlb_plan *plan = &t->plan->split;
	add(error, "; use ");
	if (t->gpu_ranks > 1)
		add(error, "fewer ranks on a node (%d ranks have this GPU), ", t->gpu_ranks);
	if (plan->recompute == WLB_RECOMPUTE_NONE)
		add(error, "--recompute-granularity selective or full, ");
	else if (plan->recompute == WLB_RECOMPUTE_SELECTIVE)
		add(error, "--recompute-granularity full, ");
	else if (plan->recompute_layers > 0)
		add(error, "a greater --recompute-num-layers, ");
	if (plan->zero_stage == 1 && plan->layout.pp == 1 && plan->layout.dp * plan->layout.cp > 1)
		add(error, "--zero-stage 2, ");
	if (t->plan->max_tokens > t->options->seq_length)
		add(error, "a smaller --micro-batch-size, ");
	if (plan->shared_head)
		add(error, "--head-stages last, ");
	add(error, "greater tp, cp or pp in --layout, or a smaller --seq-length");
}

void wlb_out_of_memory_explain(const struct wlb_trainer *t, struct wlb_error *error)
{
	if (t->device->no_memory.asked_bytes == 0 || error->message[0] == '\0' || t->groups == NULL)
		return;
	add_prediction(t, error);
	add_remedies(t, error);
}
