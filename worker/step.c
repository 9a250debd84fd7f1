#include <math.h>

#include "worker/seconds.h"
#include "worker/trainer.h"

/* Ids beyond the vocabulary would read beyond the embedding. */
static int check_ids(const struct wlb_trainer *t, struct wlb_error *error)
{
	int64_t vocab = t->plan->model.vocab_size;
	for (int64_t i = 0; i < t->batch->tokens; i++) {
		int32_t id = t->batch->ids_host[i], target = t->batch->targets_host[i];
		if (id >= vocab || target >= vocab)
			return wlb_fail(error,
			                "--data-path %.500s: it holds token id %d, ids must be below vocab_size %lld",
			                t->options->data_path, id > target ? id : target, (long long)vocab);
	}
	return 0;
}

/* Fills the batch with the pieces dealt to this rank's micro-batch `number`. */
static int fill(struct wlb_trainer *t, const struct wlb_piece *pieces, int count, int number, struct wlb_error *error)
{
	int dp = t->plan->layout.dp, bin = number * dp + wlb_comm_rank(t->dp);
	wlb_micro_batch_clear(t->batch);
	for (int i = 0; i < count; i++)
		if (t->deal.bin_of[i] == bin && wlb_micro_batch_read(t->batch, t->dataset, &pieces[i], error) < 0)
			return -1;
	return check_ids(t, error);
}

/* Gradients and summed loss of this rank's share of the pieces. */
static int run_micro_batches(struct wlb_trainer *t, const struct wlb_piece *pieces, int count, int64_t tokens,
                             struct wlb_error *error)
{
	for (int number = 0; number < t->deal.micro_batches; number++) {
		if (fill(t, pieces, count, number, error) < 0)
			return -1;
		if (t->batch->tokens == 0)
			continue; /* fewer pieces than micro-batches */
		wlb_micro_batch_upload(t->batch);
		wlb_forward(t->parameters, t->activations, t->batch);
		wlb_loss(t->parameters, t->activations, t->batch, t->loss_sum, 1.0 / (double)tokens);
		wlb_backward(t->parameters, t->activations, t->batch);
		if (t->device->ops->synchronize(t->device, error) < 0)
			return -1;
	}
	return 0;
}

/* The sums over all ranks: gradients in place, the mean loss in *loss. */
static int reduce(struct wlb_trainer *t, int64_t tokens, double *loss, struct wlb_error *error)
{
	double sum = 0.0;
	t->device->ops->to_host(t->device, &sum, t->loss_sum, sizeof(sum));
	if (wlb_comm_all_reduce(t->dp, t->parameters->gradients, t->parameters->elements, WLB_SUM, error) < 0 ||
	    wlb_comm_all_reduce_double(t->dp, &sum, 1, WLB_SUM, error) < 0)
		return -1;
	*loss = sum / (double)tokens;
	return 0;
}

static double learning_rate(const struct wlb_train_options *o, int64_t step)
{
	struct wlb_lr_schedule schedule = {
		.max_lr = o->lr,
		.min_lr = o->min_lr,
		.warmup_iters = o->lr_warmup_iters,
		.decay_iters = o->lr_decay_iters,
		.decay = (enum wlb_lr_decay)o->lr_decay_style,
	};
	return wlb_learning_rate(&schedule, step);
}

static void clear(struct wlb_trainer *t)
{
	const struct wlb_ops *ops = t->device->ops;
	ops->zero(t->device, t->parameters->gradients, t->parameters->elements * wlb_dtype_bytes(t->device->dtype));
	ops->zero(t->device, t->loss_sum, sizeof(double));
}

/* Loss and gradients are the same on all ranks by now, and so is what is wrong with them. */
static int update(struct wlb_trainer *t, struct wlb_step_facts *facts, struct wlb_error *error)
{
	if (!isfinite(facts->loss))
		return wlb_fail(error, "step %lld: the loss is %g: lower --lr, or raise --lr-warmup-iters",
		                (long long)facts->step, facts->loss);
	if (wlb_optimizer_step(t->optimizer, t->parameters, facts->step, facts->lr, &facts->grad_norm, error) < 0)
		return wlb_fail_in(error, "step %lld", (long long)facts->step);
	return 0;
}

int wlb_trainer_step(struct wlb_trainer *t, struct wlb_step_facts *facts, struct wlb_error *error)
{
	double started_s = wlb_now_s();
	const struct wlb_piece *pieces = NULL;
	int count = wlb_schedule_next(t->schedule, &pieces, error);
	if (count < 0 || wlb_deal_pieces(&t->deal, &t->plan->model, pieces, count, t->plan->layout.dp,
	                                 t->options->max_tokens, error) < 0)
		return WLB_FAILED_HERE;
	*facts = (struct wlb_step_facts){.step = t->step + 1, .documents = count};
	for (int i = 0; i < count; i++)
		facts->tokens += pieces[i].length;
	facts->lr = learning_rate(t->options, facts->step);

	clear(t);
	if (run_micro_batches(t, pieces, count, facts->tokens, error) < 0 ||
	    reduce(t, facts->tokens, &facts->loss, error) < 0)
		return WLB_FAILED_HERE;
	if (update(t, facts, error) < 0) {
		if (t->launch->rank != 0)
			error->message[0] = '\0'; /* rank 0 says the same */
		return WLB_FAILED_EVERYWHERE;
	}
	t->step = facts->step;
	facts->step_time_s = wlb_now_s() - started_s;
	return 0;
}
