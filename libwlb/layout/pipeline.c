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

int64_t wlb_plan_stage_layers(const struct wlb_plan *plan, const struct wlb_model *model, int32_t stage)
{
	int64_t slots = model->num_hidden_layers + plan->account_for_embedding + plan->account_for_loss;
	int64_t places = places_of(plan), pp = plan->layout.pp, rest = slots % places;
	int64_t larger = rest > stage ? (rest - stage + pp - 1) / pp : 0; /* chunks with one slot more */
	return slots / places * plan->interleave + larger - (stage == 0 ? plan->account_for_embedding : 0) -
	       (stage == pp - 1 ? plan->account_for_loss : 0);
}

int64_t wlb_plan_first_layer(const struct wlb_plan *plan, const struct wlb_model *model, int32_t stage, int32_t chunk)
{
	return layers_before(plan, model, place_of(plan, stage, chunk));
}

static int64_t passes_forward(const struct wlb_plan *plan)
{
	return (int64_t)plan->micro_batches * plan->interleave;
}

/* Returns the warm-up of a step with so many micro-batches that all of it is run. */
static int64_t full_warmup(const struct wlb_plan *plan, int32_t stage)
{
	int64_t pp = plan->layout.pp, after = pp - stage - 1;
	return (plan->interleave == 1 ? after : 2 * after + (plan->interleave - 1) * pp) + plan->shared_head;
}

int64_t wlb_plan_warmup(const struct wlb_plan *plan, int32_t stage)
{
	int64_t total = passes_forward(plan), passes = full_warmup(plan, stage);
	return passes < total ? passes : total;
}

int64_t wlb_plan_in_flight(const struct wlb_plan *plan, int32_t stage)
{
	int64_t total = passes_forward(plan), in_flight = wlb_plan_warmup(plan, stage) + 1;
	return in_flight < total ? in_flight : total;
}

/* Returns how many of the first `passes` forward (or backward) passes of a stage are in the chunk that they begin with.
 */
static int64_t in_first_chunk(const struct wlb_plan *plan, int64_t passes)
{
	int64_t pp = plan->layout.pp, round = pp * plan->interleave, within = passes % round;
	return plan->interleave == 1 ? passes : passes / round * pp + (within < pp ? within : pp);
}

int64_t wlb_plan_first_in_flight(const struct wlb_plan *plan, int32_t stage)
{
	return in_first_chunk(plan, wlb_plan_in_flight(plan, stage));
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

/*
 * The order of a shared head. A stage d stages before the last runs steps t = -w, 1 - w, ... with w = full_warmup. Step
 * t has up to three passes, in this order: forward pass w + t; the stage's share of the head of the micro-batch whose
 * backward pass in the model's last chunk is pass t + lead(d); backward pass t. The last stage computes its own share
 * at the beginning of that backward pass, one step after the forward pass.
 *
 * One order of all passes of all stages has each of these orders in it, so that no stage waits for one that waits for
 * it: let step t of a stage happen at tick t + lead(d), and order a tick as all forward passes, the stage farthest
 * from the last one first, then all shares of the head, then all backward passes, the last stage first. Without
 * interleaving forward pass x is at tick x - d - 1 + lead(d) and backward pass x at x + lead(d); lead(d + 1) is lead(d)
 * or one more, so both are in the order of the stages, and the shares of the head of x are at tick x, after the forward
 * pass of the last stage at tick x - 1 and before its backward pass at tick x. With interleaving lead(d) is d, forward
 * pass x is at tick x - (v - 1) pp - d - 1, and a micro-batch that goes on from the last stage to the first does so one
 * tick later, forward and backward.
 *
 * A share of the head takes the time h, passes f and b in a period T = f + h + b. The rows reach a stage f after the
 * period of the last stage began, and their gradient must be back f + h after the next one did; the stage reaches its
 * share d b + b + f after it began some period. Stages that are never idle are possible where the lead is from d b / T
 * to one more; b is about two thirds of T, three quarters where all is computed again.
 *
 * With messages that take no time a step of m micro-batches takes m (f + b + h) + (pp - 1) (f + b): what a pipeline
 * without a head takes, and m h.
 */
static int64_t head_lead(const struct wlb_plan *plan, int32_t stage)
{
	int64_t after = plan->layout.pp - stage - 1;
	if (plan->interleave > 1)
		return after;
	return plan->recompute == WLB_RECOMPUTE_FULL ? (3 * after + 3) / 4 : (2 * after + 2) / 3;
}

/* Returns the micro-batches whose backward pass in the model's last chunk is before backward pass `index`. */
static int64_t heads_before(const struct wlb_plan *plan, int64_t index)
{
	int64_t m = plan->micro_batches, heads = index > 0 ? in_first_chunk(plan, index) : 0;
	return heads < m ? heads : m;
}

/* Returns the shares of the head that a stage runs before step t. */
static int64_t shares_before(const struct wlb_plan *plan, int32_t stage, int64_t t)
{
	if (!plan->shared_head || stage == plan->layout.pp - 1)
		return 0;
	return heads_before(plan, t + head_lead(plan, stage));
}

static int64_t passes_before(const struct wlb_plan *plan, int32_t stage, int64_t t)
{
	int64_t total = passes_forward(plan), forward = t + full_warmup(plan, stage);
	return (forward < total ? forward : total) + shares_before(plan, stage, t) + (t > 0 ? t : 0);
}

int64_t wlb_plan_passes(const struct wlb_plan *plan, int32_t stage)
{
	return passes_before(plan, stage, passes_forward(plan));
}

/* Returns the step of pass n. */
static int64_t step_of(const struct wlb_plan *plan, int32_t stage, int64_t n)
{
	int64_t first = -full_warmup(plan, stage), after = passes_forward(plan);
	while (after - first > 1) {
		int64_t middle = first + (after - first) / 2;
		if (passes_before(plan, stage, middle) <= n)
			first = middle;
		else
			after = middle;
	}
	return first;
}

/* Returns pass `within` of step t. */
static struct wlb_pass pass_in_step(const struct wlb_plan *plan, int32_t stage, int64_t t, int64_t within)
{
	int64_t forward = t + full_warmup(plan, stage), share = shares_before(plan, stage, t);
	if (forward < passes_forward(plan) && within-- == 0)
		return pass_of(plan, forward, 0);
	if (shares_before(plan, stage, t + 1) > share && within == 0)
		return (struct wlb_pass){.chunk = plan->interleave - 1, .micro_batch = (int32_t)share, .head = 1};
	return pass_of(plan, t, 1);
}

/* Forward passes to warm up, then one forward and one backward in turn, then the backward passes left. */
struct wlb_pass wlb_plan_pass(const struct wlb_plan *plan, int32_t stage, int64_t n)
{
	int64_t total = passes_forward(plan), warmup = wlb_plan_warmup(plan, stage);
	if (plan->shared_head) {
		int64_t t = step_of(plan, stage, n);
		return pass_in_step(plan, stage, t, n - passes_before(plan, stage, t));
	}
	if (n < warmup)
		return pass_of(plan, n, 0);
	int64_t steady = n - warmup;
	if (steady >= 2 * (total - warmup))
		return pass_of(plan, n - total, 1);
	return steady % 2 == 0 ? pass_of(plan, warmup + steady / 2, 0) : pass_of(plan, steady / 2, 1);
}

int64_t wlb_plan_order(const struct wlb_plan *plan, int32_t stage, struct wlb_pass *passes)
{
	int64_t count = wlb_plan_passes(plan, stage), n = 0;
	for (int64_t t = -full_warmup(plan, stage); plan->shared_head && n < count; t++)
		for (int64_t first = n, end = passes_before(plan, stage, t + 1); n < end; n++)
			passes[n] = pass_in_step(plan, stage, t, n - first);
	for (; n < count; n++)
		passes[n] = wlb_plan_pass(plan, stage, n);
	return count;
}
