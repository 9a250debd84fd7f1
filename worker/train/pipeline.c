#include "worker/train/pipeline.h"

#include <stdlib.h>

#include "worker/train/shared_head.h"

/* The messages that use a slot of the transformer. */
struct holding {
	struct wlb_comm_request *output_sent;   /* to the stage after; its memory then takes the gradient */
	struct wlb_comm_request *gradient_sent; /* to the stage before; then the slot can be used again */
	struct wlb_comm_request *receiving;     /* the input or the gradient of the pass that uses the slot next */
};

struct wlb_pipeline {
	struct wlb_plan plan;
	const struct wlb_parameters *parameters;
	const struct wlb_groups *groups;
	struct wlb_transformer *transformer;
	struct wlb_optimizer *optimizer;
	struct wlb_device *device;
	struct wlb_shared_head *shared_head; /* NULL: the last stage computes the head */
	int slots;
	struct holding *holdings; /* [slots] */
	int *free_slots; /* a ring: the slot freed first is used first, so that its gradient has most likely been sent
	                  */
	int first_free;
	int free_count;
	int *slot_of;                  /* [chunks, micro_batches] while forward is done and backward is not, else -1 */
	struct wlb_micro_batch *alone; /* [micro_batches] all empty but the first, in wlb_pipeline_run_alone */
	/* of the step in progress */
	const struct wlb_loaded_step *step;
	double *loss_sum;
	const struct wlb_pass_watch *watch;
	int is_alone; /* 1: of wlb_pipeline_run_alone */
};

int wlb_pipeline_slots(const struct wlb_plan *plan, int stage)
{
	return (int)wlb_plan_in_flight(plan, stage) + (plan->layout.pp > 1);
}

/* How many messages of an edge are under way at once depends on how fast the stages are: at most one for each slot, and
 * a receive that was started early. */
static int reserve_messages(const struct wlb_pipeline *p, struct wlb_error *error)
{
	struct wlb_comm *const edges[] = {p->groups->activations_in, p->groups->activations_out,
	                                  p->groups->gradients_in, p->groups->gradients_out};
	for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]) && p->plan.layout.pp > 1; i++)
		if (wlb_comm_reserve(edges[i], p->slots + 1, error) < 0)
			return -1;
	return 0;
}

struct wlb_pipeline *wlb_pipeline_new(const struct wlb_plan *plan, const struct wlb_parameters *parameters,
                                      const struct wlb_groups *groups, struct wlb_transformer *transformer,
                                      struct wlb_optimizer *optimizer, struct wlb_error *error)
{
	struct wlb_pipeline *p = calloc(1, sizeof(*p));
	int slots = wlb_pipeline_slots(plan, groups->coords.pp);
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
		p->alone = calloc((size_t)plan->micro_batches, sizeof(*p->alone));
	}
	if (p == NULL || p->holdings == NULL || p->free_slots == NULL || p->slot_of == NULL || p->alone == NULL) {
		wlb_fail(error, "out of memory for a pipeline of %d micro-batches", plan->micro_batches);
		wlb_pipeline_free(p);
		return NULL;
	}
	if (plan->shared_head) {
		p->shared_head = wlb_shared_head_new(groups, transformer, parameters->device,
		                                     parameters->shape.hidden_size, slots, error);
		if (p->shared_head == NULL) {
			wlb_pipeline_free(p);
			return NULL;
		}
	}
	for (int i = 0; i < slots; i++)
		p->free_slots[i] = i;
	for (int i = 0; i < plan->interleave * plan->micro_batches; i++)
		p->slot_of[i] = -1;
	if (reserve_messages(p, error) == 0)
		return p;
	wlb_pipeline_free(p);
	return NULL;
}

void wlb_pipeline_free(struct wlb_pipeline *p)
{
	if (p == NULL)
		return;
	wlb_shared_head_free(p->shared_head);
	free(p->holdings);
	free(p->free_slots);
	free(p->slot_of);
	free(p->alone);
	free(p);
}

/* Returns the stage of the chunk that is `steps` places after this one's in the model, or before it where `steps` is
 * negative; -1 where there is none. */
static int neighbour(const struct wlb_pipeline *p, int chunk, int steps)
{
	int pp = p->plan.layout.pp, place = chunk * pp + p->groups->coords.pp + steps;
	return place < 0 || place >= pp * p->plan.interleave ? -1 : place % pp;
}

/* Returns how many reals of the residual stream a rank holds for a micro-batch. */
static size_t stream_count(const struct wlb_pipeline *p, const struct wlb_micro_batch *batch)
{
	return (size_t)(batch->rows / p->plan.layout.tp * p->parameters->shape.hidden_size);
}

/* In a communicator of two ranks the sender is the first. */
enum { SENDER = 0, RECEIVER = 1 };

static struct wlb_comm_request *send_start(struct wlb_pipeline *p, struct wlb_comm *comm, const void *buffer,
                                           const struct wlb_micro_batch *batch, struct wlb_error *error)
{
	return wlb_comm_send_start(comm, buffer, stream_count(p, batch), p->device->compute, RECEIVER, error);
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

/* Returns 1 where the pass begins with a message from another stage. */
static int receives(const struct wlb_pipeline *p, struct wlb_pass pass)
{
	return neighbour(p, pass.chunk, pass.backward ? +1 : -1) >= 0;
}

/* Starts to receive what the pass begins with, in the slot of this number, once what its memory sent has been sent. */
static int receive_start(struct wlb_pipeline *p, struct wlb_pass pass, int number, struct wlb_error *error)
{
	const struct wlb_micro_batch *batch = &p->step->list[pass.micro_batch];
	struct holding *holding = &p->holdings[number];
	const struct wlb_slot *slot = wlb_transformer_slot(p->transformer, number);
	struct wlb_comm *from = pass.backward ? p->groups->gradients_in : p->groups->activations_in;
	if (wait_for(pass.backward ? &holding->output_sent : &holding->gradient_sent, error) < 0)
		return -1;
	holding->receiving = wlb_comm_recv_start(from, pass.backward ? slot->output : slot->input,
	                                         stream_count(p, batch), p->device->compute, SENDER, error);
	return holding->receiving != NULL ? 0 : -1;
}

static int receive(struct wlb_pipeline *p, struct wlb_pass pass, int number, struct wlb_error *error)
{
	if (p->holdings[number].receiving == NULL && receive_start(p, pass, number, error) < 0)
		return -1;
	return wait_for(&p->holdings[number].receiving, error);
}

static int64_t pass_count(const struct wlb_pipeline *p)
{
	return wlb_plan_passes(&p->plan, p->groups->coords.pp);
}

/* Before pass n computes, starts the receive of the next pass over layers that has tokens, where its memory is free by
 * now: the receive then needs no buffer of its own. A send that still uses the memory is not waited for here, since
 * stages could then wait for each other. Over MPI without interleaving it is not done: the messages that arrive during
 * a pass then made a step of two stages 4 % longer, where with interleaving it was 2 to 4 % shorter. */
static int receive_next(struct wlb_pipeline *p, int64_t n, struct wlb_error *error)
{
	struct wlb_pass pass;
	if (p->plan.interleave == 1 && wlb_comm_blocks_host(p->groups->gradients_in))
		return 0;
	do {
		if (++n == pass_count(p))
			return 0;
		pass = wlb_plan_pass(&p->plan, p->groups->coords.pp, n);
	} while (pass.head || p->step->list[pass.micro_batch].tokens == 0);
	if (!receives(p, pass) || (pass.backward ? *slot_of(p, pass) < 0 : p->free_count == 0))
		return 0;
	int number = pass.backward ? *slot_of(p, pass) : p->free_slots[p->first_free];
	struct holding *holding = &p->holdings[number];
	if (!wlb_comm_has_ended(pass.backward ? holding->output_sent : holding->gradient_sent))
		return 0;
	return receive_start(p, pass, number, error);
}

static int tell_left(const struct wlb_pipeline *p, struct wlb_pass pass, const void *stream, struct wlb_error *error)
{
	size_t bytes = stream_count(p, &p->step->list[pass.micro_batch]) * wlb_dtype_bytes(p->device->compute);
	return p->watch->leaves != NULL ? p->watch->leaves(p->watch->context, pass, stream, bytes, error) : 0;
}

static int forward(struct wlb_pipeline *p, struct wlb_pass pass, int64_t n, struct wlb_error *error)
{
	const struct wlb_micro_batch *batch = &p->step->list[pass.micro_batch];
	int number = p->free_slots[p->first_free];
	struct wlb_slot *slot = wlb_transformer_slot(p->transformer, number);
	p->first_free = (p->first_free + 1) % p->slots;
	p->free_count--;
	if (receives(p, pass) && receive(p, pass, number, error) < 0)
		return -1;
	if (wait_for(&p->holdings[number].gradient_sent, error) < 0 || receive_next(p, n, error) < 0 ||
	    wlb_forward(p->transformer, pass.chunk, slot, batch, error) < 0 ||
	    tell_left(p, pass, slot->output, error) < 0)
		return -1;
	*slot_of(p, pass) = number;
	if (neighbour(p, pass.chunk, +1) < 0)
		return p->shared_head != NULL ? wlb_shared_head_send(p->shared_head, number, batch, error) : 0;
	p->holdings[number].output_sent = send_start(p, p->groups->activations_out, slot->output, batch, error);
	return p->holdings[number].output_sent != NULL ? 0 : -1;
}

static int is_last(const struct wlb_pipeline *p, struct wlb_pass pass)
{
	return pass.micro_batch == p->plan.micro_batches - 1;
}

/* Returns the next micro-batch of the step that has tokens, NULL where there is none. */
static const struct wlb_micro_batch *batch_after(const struct wlb_pipeline *p, int32_t micro_batch)
{
	while (++micro_batch < p->plan.micro_batches)
		if (p->step->list[micro_batch].tokens > 0)
			return &p->step->list[micro_batch];
	return NULL;
}

static struct wlb_head_loss loss_of(const struct wlb_pipeline *p)
{
	/* Without any token that counts no row has a target, and all gradients are 0. */
	int64_t tokens = p->step->loss_tokens > 0 ? p->step->loss_tokens : 1;
	return (struct wlb_head_loss){.sum = p->loss_sum, .scale = 1.0 / (double)tokens};
}

/* Sets the output of slot `number` to the gradient of the loss, in the pass of the last chunk of the model. */
static int take_loss(struct wlb_pipeline *p, struct wlb_pass pass, int number, const struct wlb_backward_watch *watch,
                     struct wlb_error *error)
{
	const struct wlb_micro_batch *batch = &p->step->list[pass.micro_batch];
	const struct wlb_head_loss loss = loss_of(p);
	if (p->shared_head != NULL)
		return wlb_shared_head_take_loss(p->shared_head, pass.chunk, number, batch,
		                                 batch_after(p, pass.micro_batch), &loss, watch, error);
	return wlb_head_loss(p->transformer, pass.chunk, wlb_transformer_slot(p->transformer, number), batch, loss.sum,
	                     loss.scale, watch, error);
}

/* The stage's share of the head. */
static int share_head(struct wlb_pipeline *p, struct wlb_pass pass, struct wlb_error *error)
{
	const struct wlb_head_loss loss = loss_of(p);
	return wlb_shared_head_compute(p->shared_head, &p->step->list[pass.micro_batch],
	                               batch_after(p, pass.micro_batch), &loss, error);
}

/* Whether the gradients of a pass are reduced as they become complete. */
static int reduces(const struct wlb_pipeline *p, struct wlb_pass pass)
{
	return !p->is_alone && pass.backward && (is_last(p, pass) || p->plan.zero_stage > 1);
}

static struct wlb_backward_watch watch_of(const struct wlb_pipeline *p, struct wlb_pass pass)
{
	if (p->is_alone)
		return (struct wlb_backward_watch){.layer_done = p->watch->layer_done, .context = p->watch->context};
	return (struct wlb_backward_watch){.layer_done = reduces(p, pass) ? wlb_optimizer_layer_done : NULL,
	                                   .context = p->optimizer};
}

static int backward(struct wlb_pipeline *p, struct wlb_pass pass, int64_t n, struct wlb_error *error)
{
	const struct wlb_micro_batch *batch = &p->step->list[pass.micro_batch];
	const struct wlb_backward_watch of_pass = watch_of(p, pass);
	const struct wlb_backward_watch *watch = of_pass.layer_done != NULL ? &of_pass : NULL;
	int number = *slot_of(p, pass);
	struct wlb_slot *slot = wlb_transformer_slot(p->transformer, number);
	if ((reduces(p, pass) && wlb_optimizer_begin_pass(p->optimizer, is_last(p, pass), error) < 0) ||
	    (receives(p, pass) && receive(p, pass, number, error) < 0) || receive_next(p, n, error) < 0 ||
	    (!receives(p, pass) && take_loss(p, pass, number, watch, error) < 0) ||
	    wlb_backward(p->transformer, pass.chunk, slot, batch, watch, error) < 0)
		return -1;
	p->free_slots[(p->first_free + p->free_count++) % p->slots] = number;
	*slot_of(p, pass) = -1;
	if (neighbour(p, pass.chunk, -1) < 0)
		return 0;
	if (tell_left(p, pass, slot->output, error) < 0)
		return -1;
	p->holdings[number].gradient_sent = send_start(p, p->groups->gradients_out, slot->output, batch, error);
	return p->holdings[number].gradient_sent != NULL ? 0 : -1;
}

/* A pass without tokens, which are of the same micro-batch on all stages: the other ranks of the data group may have
 * some. */
static int skip_pass(struct wlb_pipeline *p, struct wlb_pass pass, struct wlb_error *error)
{
	if (!reduces(p, pass))
		return 0;
	if (wlb_optimizer_begin_pass(p->optimizer, is_last(p, pass), error) < 0)
		return -1;
	return wlb_optimizer_chunk_done(p->optimizer, pass.chunk, error);
}

/* Runs pass number n of this stage. */
static int run_pass(struct wlb_pipeline *p, int64_t n, struct wlb_error *error)
{
	const struct wlb_pass_watch *watch = p->watch;
	struct wlb_pass pass = wlb_plan_pass(&p->plan, p->groups->coords.pp, n);
	const struct wlb_micro_batch *batch = &p->step->list[pass.micro_batch];
	if (batch->tokens == 0)
		return skip_pass(p, pass, error);
	watch->begins(watch->context, pass.backward || pass.head);
	int rc = pass.head       ? share_head(p, pass, error)
	         : pass.backward ? backward(p, pass, n, error)
	                         : forward(p, pass, n, error);
	return rc < 0 ? -1 : watch->queued(watch->context, error);
}

static int run(struct wlb_pipeline *p, const struct wlb_loaded_step *step, double *loss_sum,
               const struct wlb_pass_watch *watch, struct wlb_error *error)
{
	p->step = step;
	p->loss_sum = loss_sum;
	p->watch = watch;
	for (int64_t n = 0; n < pass_count(p); n++)
		if (run_pass(p, n, error) < 0)
			return -1;
	for (int i = 0; i < p->slots; i++)
		if (wait_for(&p->holdings[i].gradient_sent, error) < 0)
			return -1;
	return p->shared_head != NULL ? wlb_shared_head_end_step(p->shared_head, error) : 0;
}

int wlb_pipeline_run(struct wlb_pipeline *p, const struct wlb_loaded_step *step, double *loss_sum,
                     const struct wlb_pass_watch *watch, struct wlb_error *error)
{
	p->is_alone = 0;
	return run(p, step, loss_sum, watch, error);
}

int wlb_pipeline_run_alone(struct wlb_pipeline *p, const struct wlb_micro_batch *batch, double *loss_sum,
                           const struct wlb_pass_watch *watch, struct wlb_error *error)
{
	p->alone[0] = *batch;
	const struct wlb_loaded_step step = {
		.loss_tokens = batch->tokens, .micro_batches = p->plan.micro_batches, .list = p->alone};
	p->is_alone = 1;
	return run(p, &step, loss_sum, watch, error);
}

/* The slots are used in turn: what one has sent has most likely arrived when it is used again. */
static int evaluate_pass(struct wlb_pipeline *p, struct wlb_pass pass, struct wlb_error *error)
{
	const struct wlb_micro_batch *batch = &p->step->list[pass.micro_batch];
	int number = p->free_slots[p->first_free], is_last_chunk = neighbour(p, pass.chunk, +1) < 0;
	struct wlb_slot *slot = wlb_transformer_slot(p->transformer, number);
	struct holding *holding = &p->holdings[number];
	p->first_free = (p->first_free + 1) % p->slots;
	if ((receives(p, pass) && receive(p, pass, number, error) < 0) || wait_for(&holding->output_sent, error) < 0 ||
	    wlb_forward(p->transformer, pass.chunk, slot, batch, error) < 0 ||
	    (is_last_chunk && wlb_head_evaluate(p->transformer, slot, batch, p->loss_sum, error) < 0))
		return -1;
	wlb_forward_end(p->transformer, slot);
	if (is_last_chunk)
		return 0;
	holding->output_sent = send_start(p, p->groups->activations_out, slot->output, batch, error);
	return holding->output_sent != NULL ? 0 : -1;
}

int wlb_pipeline_evaluate(struct wlb_pipeline *p, const struct wlb_loaded_step *step, double *loss_sum,
                          struct wlb_error *error)
{
	p->step = step;
	p->loss_sum = loss_sum;
	for (int64_t n = 0; n < pass_count(p); n++) {
		struct wlb_pass pass = wlb_plan_pass(&p->plan, p->groups->coords.pp, n);
		int is_forward = !pass.backward && !pass.head;
		if (is_forward && step->list[pass.micro_batch].tokens > 0 && evaluate_pass(p, pass, error) < 0)
			return -1;
	}
	for (int i = 0; i < p->slots; i++)
		if (wait_for(&p->holdings[i].output_sent, error) < 0)
			return -1;
	return 0;
}
