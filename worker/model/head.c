/* The final norm, the product with the vocabulary and the loss. Logits are computed of a part of the rows at a time: of
 * all rows they would be the largest buffer of the last stage. */
#include "worker/model/activations.h"
#include "worker/model/gathered_weights.h"
#include "worker/model/linear.h"
#include "worker/model/norm.h"
#include "worker/model/tensor_parallel.h"

/* Rows [first, first + count) of a micro-batch. */
struct part {
	int64_t first, count;
};

/* Divides n rows into equal parts of at most logit_rows. Starts with first and count 0; returns 0 after the last. */
static int next_part(const struct wlb_transformer *t, int64_t n, struct part *part)
{
	int64_t parts = (n + t->logit_rows - 1) / t->logit_rows, rows = (n + parts - 1) / parts;
	part->first += part->count;
	part->count = n - part->first < rows ? n - part->first : rows;
	return part->count > 0;
}

/* norm[n, h] = the final norm of all rows; `norm` is scratch.final_norm where tp is 1. The weights of the norm and of
 * the head are there afterwards. */
static int final_norm(struct wlb_transformer *t, void *norm, const void *x, int64_t n, struct wlb_error *error)
{
	const struct wlb_scratch *s = &t->scratch;
	const struct wlb_parameters *p = t->parameters;
	if (wlb_weights_await(p, p->final_norm, p->final_norm, error) < 0 ||
	    wlb_weights_await(p, p->head, p->head, error) < 0)
		return -1;
	wlb_norm(t, s->final_norm, s->final_rstd, NULL, x, NULL, p->final_norm, n);
	return wlb_tp_all_gather(t, norm, s->final_norm, n, error);
}

/* Replaces scratch.logits of a part by their gradient and adds to the loss. The ranks' slices of the vocabulary are
 * combined through three numbers a row. */
static int cross_entropy(struct wlb_transformer *t, const int32_t *targets, int64_t rows, double *loss_sum,
                         double scale, struct wlb_error *error)
{
	const struct wlb_parameters *p = t->parameters;
	const struct wlb_ops *ops = t->device->ops;
	void *logits = t->scratch.logits, *all = t->scratch.statistics;
	int rank = wlb_comm_rank(t->tp);
	void *own = wlb_element(t->device->main, all, rank * rows * 3);

	ops->cross_entropy_statistics(t->device, own, logits, targets, rows, p->vocab_start, p->vocab);
	if (t->tp_size > 1 && wlb_comm_all_gather(t->tp, all, own, (size_t)(rows * 3), t->device->main, error) < 0)
		return -1;
	ops->cross_entropy_gradient(t->device, rank == 0 ? loss_sum : NULL, logits, all, t->tp_size, targets, rows,
	                            p->vocab_start, p->vocab, scale);
	return 0;
}

int wlb_head_loss(struct wlb_transformer *t, int chunk, struct wlb_slot *slot, const struct wlb_micro_batch *batch,
                  double *loss_sum, double scale, const struct wlb_backward_watch *watch, struct wlb_error *error)
{
	const struct wlb_parameters *p = t->parameters;
	const struct wlb_scratch *s = &t->scratch;
	const struct wlb_ops *ops = t->device->ops;
	enum wlb_dtype compute = t->device->compute;
	int64_t n = batch->rows, hidden = p->shape.hidden_size;
	size_t bytes = wlb_bytes(compute, wlb_share_elements(t, n));
	const struct wlb_matrix head = wlb_matrix_of(p, p->head, p->head);
	void *norm = wlb_tp_rows(t, s->gathered, s->final_norm), *d_norm = wlb_tp_rows(t, s->addend, s->d_norm);

	if (final_norm(t, norm, slot->output, n, error) < 0)
		return -1;
	for (struct part part = {0}; next_part(t, n, &part);) {
		void *x = wlb_element(compute, norm, part.first * hidden);
		wlb_linear(t->device, s->logits, p->vocab, x, &head, NULL, part.count);
		if (cross_entropy(t, batch->targets + part.first, part.count, loss_sum, scale, error) < 0)
			return -1;
		wlb_linear_backward(t->device, wlb_element(compute, d_norm, part.first * hidden), 0, s->logits,
		                    p->vocab, x, &head, part.count);
	}
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
	const struct wlb_parameters *p = t->parameters;
	const struct wlb_scratch *s = &t->scratch;
	enum wlb_dtype compute = t->device->compute;
	const struct wlb_matrix head = wlb_matrix_of(p, p->head, p->head);
	if (wlb_forward(t, 0, &t->slots[0], batch, error) < 0 ||
	    final_norm(t, s->final_norm, t->slots[0].output, batch->rows, error) < 0)
		return -1;
	for (struct part part = {0}; next_part(t, batch->rows, &part);) {
		wlb_linear(t->device, s->logits, p->vocab,
		           wlb_element(compute, s->final_norm, part.first * p->shape.hidden_size), &head, NULL,
		           part.count);
		t->device->ops->to_host(t->device, wlb_element(compute, out_host, part.first * p->vocab), s->logits,
		                        wlb_bytes(compute, part.count * p->vocab));
	}
	return t->device->ops->synchronize(t->device, error);
}
