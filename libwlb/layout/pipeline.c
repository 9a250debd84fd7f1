/* Computes the layers of each chunk of a pipeline, and the order in which a stage runs its passes. */
#include "libwlb/wlb.h"

static int64_t place_of(const struct wlb_plan *plan, int32_t stage, int32_t chunk)
{
	return (int64_t)chunk * plan->layout.pp + stage;
}

static int64_t places_of(const struct wlb_plan *plan)
{
	return (int64_t)plan->layout.pp * plan->interleave;
}

/* Returns the layers in front of a place, with the embedding and the head where they count as layers. */
static int64_t slots_before(const struct wlb_plan *plan, const struct wlb_model *model, int64_t place)
{
	int64_t slots = model->num_hidden_layers + plan->account_for_embedding + plan->account_for_loss;
	int64_t places = places_of(plan), rest = slots % places;
	return slots / places * place + (place < rest ? place : rest);
}

/* Returns the layers in front of a place: the embedding is the first slot, the head the last. */
static int64_t layers_before(const struct wlb_plan *plan, const struct wlb_model *model, int64_t place)
{
	int64_t slots = slots_before(plan, model, place);
	slots -= place > 0 ? plan->account_for_embedding : 0;
	return slots - (place == places_of(plan) ? plan->account_for_loss : 0);
}

int64_t wlb_plan_layers(const struct wlb_plan *plan, const struct wlb_model *model, int32_t stage, int32_t chunk)
{
	int64_t place = place_of(plan, stage, chunk);
	return layers_before(plan, model, place + 1) - layers_before(plan, model, place);
}

int64_t wlb_plan_first_layer(const struct wlb_plan *plan, const struct wlb_model *model, int32_t stage, int32_t chunk)
{
	return layers_before(plan, model, place_of(plan, stage, chunk));
}

int64_t wlb_plan_warmup(const struct wlb_plan *plan, int32_t stage)
{
	int64_t pp = plan->layout.pp, after = pp - stage - 1;
	int64_t total = (int64_t)plan->micro_batches * plan->interleave;
	int64_t passes = plan->interleave == 1 ? after : 2 * after + (plan->interleave - 1) * pp;
	return passes < total ? passes : total;
}

/* The index-th forward (or backward) pass of any stage: pp micro-batches go through a chunk, then the next chunk. */
static struct wlb_pass pass_of(const struct wlb_plan *plan, int64_t index, int32_t backward)
{
	int64_t pp = plan->layout.pp, v = plan->interleave;
	if (v == 1)
		return (struct wlb_pass){.micro_batch = (int32_t)index, .backward = backward};
	int64_t round = index / (pp * v), within = index % (pp * v);
	struct wlb_pass pass = {.chunk = (int32_t)(within / pp), .backward = backward};
	pass.micro_batch = (int32_t)(round * pp + within % pp);
	if (backward)
		pass.chunk = (int32_t)v - 1 - pass.chunk;
	return pass;
}

/* Forward passes to warm up, then one forward and one backward in turn, then the backward passes left. */
struct wlb_pass wlb_plan_pass(const struct wlb_plan *plan, int32_t stage, int64_t n)
{
	int64_t total = (int64_t)plan->micro_batches * plan->interleave, warmup = wlb_plan_warmup(plan, stage);
	if (n < warmup)
		return pass_of(plan, n, 0);
	int64_t steady = n - warmup;
	if (steady >= 2 * (total - warmup))
		return pass_of(plan, n - total, 1);
	return steady % 2 == 0 ? pass_of(plan, warmup + steady / 2, 0) : pass_of(plan, steady / 2, 1);
}
