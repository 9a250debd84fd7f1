#include "worker/model/activations.h"
#include "worker/model/linear.h"
#include "worker/model/norm.h"
#include "worker/model/tensor_parallel.h"

/* Computes scratch.logits of all rows, for this rank's slice of the vocabulary, and sets *norm to the final norm of all
 * rows, which their gradient needs. */
static int logits_of(struct wlb_transformer *t, const void *x, int64_t n, const void **norm, struct wlb_error *error)
{
	const struct wlb_parameters *p = t->parameters;
	const struct wlb_scratch *s = &t->scratch;
	wlb_norm(t, s->final_norm, s->final_rstd, x, p->final_norm, n);
	if (wlb_tp_gather(t, s->final_norm, n, norm, error) < 0)
		return -1;
	wlb_linear(p, s->logits, *norm, p->head, n, 0.0);
	return 0;
}

/* Replaces scratch.logits by their gradient and adds to the loss. The ranks' slices of the vocabulary are combined
 * through three numbers a row. */
static int cross_entropy(struct wlb_transformer *t, const struct wlb_micro_batch *batch, double *loss_sum, double scale,
                         struct wlb_error *error)
{
	const struct wlb_parameters *p = t->parameters;
	const struct wlb_ops *ops = t->device->ops;
	void *logits = t->scratch.logits, *all = t->scratch.statistics;
	int64_t n = batch->rows;
	int rank = wlb_comm_rank(t->tp);
	void *own = wlb_element(t, all, rank * n * 3);

	ops->cross_entropy_statistics(t->device, own, logits, batch->targets, n, p->vocab_start, p->vocab);
	if (t->tp_size > 1 && wlb_comm_all_gather(t->tp, all, own, (size_t)(n * 3), t->device->main, error) < 0)
		return -1;
	ops->cross_entropy_gradient(t->device, rank == 0 ? loss_sum : NULL, logits, all, t->tp_size, batch->targets, n,
	                            p->vocab_start, p->vocab, scale);
	return 0;
}

int wlb_head_loss(struct wlb_transformer *t, int chunk, struct wlb_slot *slot, const struct wlb_micro_batch *batch,
                  double *loss_sum, double scale, const struct wlb_backward_watch *watch, struct wlb_error *error)
{
	const struct wlb_parameters *p = t->parameters;
	const struct wlb_scratch *s = &t->scratch;
	const struct wlb_ops *ops = t->device->ops;
	int64_t n = batch->rows;
	size_t bytes = wlb_bytes(t, n / t->tp_size * p->shape.hidden_size);
	const void *norm;

	if (logits_of(t, slot->output, n, &norm, error) < 0 || cross_entropy(t, batch, loss_sum, scale, error) < 0)
		return -1;
	wlb_linear_backward(p, s->addend, 0.0, s->logits, norm, p->head, n);
	if (wlb_tp_scatter(t, s->d_norm, s->addend, n, error) < 0)
		return -1;
	/* The norm's backward pass reads slot->output and adds to its result, which therefore needs other memory. */
	ops->zero(t->device, s->final_norm, bytes);
	wlb_norm_backward(t, s->final_norm, s->d_norm, slot->output, s->final_rstd, p->final_norm, n);
	ops->copy(t->device, slot->output, s->final_norm, bytes);
	return wlb_layer_done(watch, chunk, p->chunks[chunk].layers, error);
}

int wlb_logits(struct wlb_transformer *t, const struct wlb_micro_batch *batch, void *out_host, struct wlb_error *error)
{
	const void *norm;
	if (wlb_forward(t, 0, &t->slots[0], batch, error) < 0 ||
	    logits_of(t, t->slots[0].output, batch->rows, &norm, error) < 0)
		return -1;
	t->device->ops->to_host(t->device, out_host, t->scratch.logits,
	                        wlb_bytes(t, batch->rows * t->parameters->vocab));
	return t->device->ops->synchronize(t->device, error);
}
