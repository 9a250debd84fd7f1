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
	const struct wlb_matrix head = wlb_matrix_of(p, p->head, p->head);
	void *all = wlb_tp_rows(t, s->gathered, s->final_norm);
	wlb_norm(t, s->final_norm, s->final_rstd, NULL, x, NULL, p->final_norm, n);
	if (wlb_tp_all_gather(t, all, s->final_norm, n, error) < 0)
		return -1;
	wlb_linear(t->device, s->logits, p->vocab, all, &head, NULL, n);
	*norm = all;
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
	void *own = wlb_element(t->device->main, all, rank * n * 3);

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
	size_t bytes = wlb_bytes(t->device->compute, wlb_share_elements(t, n));
	const struct wlb_matrix head = wlb_matrix_of(p, p->head, p->head);
	void *d_norm = wlb_tp_rows(t, s->addend, s->d_norm);
	const void *norm;

	if (logits_of(t, slot->output, n, &norm, error) < 0 || cross_entropy(t, batch, loss_sum, scale, error) < 0)
		return -1;
	wlb_linear_backward(t->device, d_norm, 0, s->logits, p->vocab, norm, &head, n);
	if (wlb_tp_reduce_scatter(t, s->d_norm, d_norm, n, error) < 0)
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
	                        wlb_bytes(t->device->compute, batch->rows * t->parameters->vocab));
	return t->device->ops->synchronize(t->device, error);
}
