#include "worker/train/pipeline.h"

#include <stdlib.h>

/* The sends that use a slot of the transformer. */
struct holding {
	struct wlb_comm_request *output_sent;   /* to the stage after; its memory then takes the gradient */
	struct wlb_comm_request *gradient_sent; /* to the stage before; then the slot can be used again */
};

struct wlb_pipeline {
	struct wlb_plan plan;
	const struct wlb_parameters *parameters;
	const struct wlb_groups *groups;
	struct wlb_transformer *transformer;
	struct wlb_optimizer *optimizer;
	struct wlb_device *device;
	int slots;
	struct holding *holdings; /* [slots] */
	int *free_slots; /* a ring: the slot freed first is used first, so that its gradient has most likely been sent
	                  */
	int first_free;
	int free_count;
	int *slot_of; /* [chunks, micro_batches] while forward is done and backward is not */
	/* of the step in progress */
	const struct wlb_loaded_step *step;
	double *loss_sum;
};

int wlb_pipeline_slots(const struct wlb_plan *plan, int stage)
{
	int64_t passes = (int64_t)plan->interleave * plan->micro_batches, held = wlb_plan_warmup(plan, stage) + 1;
	if (plan->layout.pp > 1)
		held++;
	return (int)(held < passes ? held : passes);
}

struct wlb_pipeline *wlb_pipeline_new(const struct wlb_plan *plan, const struct wlb_parameters *parameters,
                                      const struct wlb_groups *groups, struct wlb_transformer *transformer,
                                      struct wlb_optimizer *optimizer, struct wlb_error *error)
{
	struct wlb_pipeline *p = calloc(1, sizeof(*p));
	int slots = wlb_pipeline_slots(plan, groups->at.pp);
	if (p != NULL) {
		*p = (struct wlb_pipeline){
			.plan = *plan,
			.parameters = parameters,
			.groups = groups,
			.transformer = transformer,
			.optimizer = optimizer,
			.device = parameters->device,
			.slots = slots,
			.free_count = slots,
		};
		p->holdings = calloc((size_t)slots, sizeof(*p->holdings));
		p->free_slots = calloc((size_t)slots, sizeof(*p->free_slots));
		p->slot_of = calloc((size_t)plan->interleave * (size_t)plan->micro_batches, sizeof(*p->slot_of));
	}
	if (p == NULL || p->holdings == NULL || p->free_slots == NULL || p->slot_of == NULL) {
		wlb_fail(error, "out of memory for a pipeline of %d micro-batches", plan->micro_batches);
		wlb_pipeline_free(p);
		return NULL;
	}
	for (int i = 0; i < slots; i++)
		p->free_slots[i] = i;
	return p;
}

void wlb_pipeline_free(struct wlb_pipeline *p)
{
	if (p == NULL)
		return;
	free(p->holdings);
	free(p->free_slots);
	free(p->slot_of);
	free(p);
}

/* Returns the stage of the chunk that is `steps` places after this one's in the model, or before it where `steps` is
 * negative; -1 where there is none. */
static int neighbour(const struct wlb_pipeline *p, int chunk, int steps)
{
	int pp = p->plan.layout.pp, place = chunk * pp + p->groups->at.pp + steps;
	return place < 0 || place >= pp * p->plan.interleave ? -1 : place % pp;
}

/* Returns how many reals of the residual stream a rank holds for a micro-batch. */
static size_t stream_count(const struct wlb_pipeline *p, const struct wlb_micro_batch *batch)
{
	return (size_t)(batch->rows / p->plan.layout.tp * p->parameters->shape.hidden_size);
}

static int receive(struct wlb_pipeline *p, struct wlb_comm *comm, void *buffer, const struct wlb_micro_batch *batch,
                   int from, struct wlb_error *error)
{
	return wlb_comm_recv(comm, buffer, stream_count(p, batch), p->device->compute, from, error);
}

static int *slot_of(struct wlb_pipeline *p, struct wlb_pass pass)
{
	return &p->slot_of[pass.chunk * p->plan.micro_batches + pass.micro_batch];
}

static int wait_for(struct wlb_comm_request **request, struct wlb_error *error)
{
	struct wlb_comm_request *waited = *request;
	*request = NULL;
	return wlb_comm_wait(waited, error);
}

static int forward(struct wlb_pipeline *p, struct wlb_pass pass, struct wlb_error *error)
{
	const struct wlb_micro_batch *batch = &p->step->list[pass.micro_batch];
	int before = neighbour(p, pass.chunk, -1), after = neighbour(p, pass.chunk, +1);
	int number = p->free_slots[p->first_free];
	struct wlb_slot *slot = wlb_transformer_slot(p->transformer, number);
	p->first_free = (p->first_free + 1) % p->slots;
	p->free_count--;
	*slot_of(p, pass) = number;
	if (wait_for(&p->holdings[number].gradient_sent, error) < 0)
		return -1;
	if (before >= 0 && receive(p, p->groups->pp, slot->input, batch, before, error) < 0)
		return -1;
	if (wlb_forward(p->transformer, pass.chunk, slot, batch, error) < 0)
		return -1;
	if (after < 0)
		return 0;
	p->holdings[number].output_sent = wlb_comm_send_start(p->groups->pp, slot->output, stream_count(p, batch),
	                                                      p->device->compute, after, error);
	return p->holdings[number].output_sent != NULL ? 0 : -1;
}

static int is_last(const struct wlb_pipeline *p, struct wlb_pass pass)
{
	return pass.micro_batch == p->plan.micro_batches - 1;
}

/* Sets slot->output to the gradient of the chunk's output: that of the loss, or the one that the next stage sends. */
static int take_gradient(struct wlb_pipeline *p, struct wlb_pass pass, struct wlb_slot *slot,
                         const struct wlb_backward_watch *watch, struct wlb_error *error)
{
	const struct wlb_micro_batch *batch = &p->step->list[pass.micro_batch];
	int after = neighbour(p, pass.chunk, +1);
	if (after >= 0)
		return receive(p, p->groups->pp_back, slot->output, batch, after, error);
	return wlb_head_loss(p->transformer, pass.chunk, slot, batch, p->loss_sum, 1.0 / (double)p->step->tokens, watch,
	                     error);
}

static int backward(struct wlb_pipeline *p, struct wlb_pass pass, struct wlb_error *error)
{
	const struct wlb_micro_batch *batch = &p->step->list[pass.micro_batch];
	const struct wlb_backward_watch reduce = {.layer_done = wlb_optimizer_layer_done, .context = p->optimizer};
	const struct wlb_backward_watch *watch = is_last(p, pass) ? &reduce : NULL;
	int number = *slot_of(p, pass), before = neighbour(p, pass.chunk, -1);
	struct wlb_slot *slot = wlb_transformer_slot(p->transformer, number);
	if (wait_for(&p->holdings[number].output_sent, error) < 0 || take_gradient(p, pass, slot, watch, error) < 0 ||
	    wlb_backward(p->transformer, pass.chunk, slot, batch, watch, error) < 0)
		return -1;
	p->free_slots[(p->first_free + p->free_count++) % p->slots] = number;
	if (before < 0)
		return 0;
	p->holdings[number].gradient_sent = wlb_comm_send_start(
		p->groups->pp_back, slot->output, stream_count(p, batch), p->device->compute, before, error);
	return p->holdings[number].gradient_sent != NULL ? 0 : -1;
}

static int run_pass(struct wlb_pipeline *p, struct wlb_pass pass, const struct wlb_pass_watch *watch,
                    struct wlb_error *error)
{
	const struct wlb_micro_batch *batch = &p->step->list[pass.micro_batch];
	if (batch->tokens == 0) /* of the same micro-batch on all stages */
		return pass.backward && is_last(p, pass) ? wlb_optimizer_chunk_done(p->optimizer, pass.chunk, error)
		                                         : 0;
	watch->begins(watch->context);
	int rc = pass.backward ? backward(p, pass, error) : forward(p, pass, error);
	if (rc < 0 || p->device->ops->synchronize(p->device, error) < 0)
		return -1;
	watch->ended(watch->context, pass.backward);
	return 0;
}

int wlb_pipeline_run(struct wlb_pipeline *p, const struct wlb_loaded_step *step, double *loss_sum,
                     const struct wlb_pass_watch *watch, struct wlb_error *error)
{
	p->step = step;
	p->loss_sum = loss_sum;
	int64_t passes = 2 * (int64_t)p->plan.interleave * p->plan.micro_batches;
	for (int64_t n = 0; n < passes; n++)
		if (run_pass(p, wlb_plan_pass(&p->plan, p->groups->at.pp, n), watch, error) < 0)
			return -1;
	for (int i = 0; i < p->slots; i++)
		if (wait_for(&p->holdings[i].gradient_sent, error) < 0)
			return -1;
	return 0;
}
