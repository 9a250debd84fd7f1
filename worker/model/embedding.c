#include "worker/model/embedding.h"

#include "worker/model/tensor_parallel.h"

int wlb_embedding(struct wlb_transformer *t, void *out, const struct wlb_micro_batch *batch, struct wlb_error *error)
{
	const struct wlb_parameters *p = t->parameters;
	void *addend = t->tp_size > 1 ? t->scratch.addend : out;
	t->device->ops->embedding_forward(t->device, addend, wlb_weight(p, p->embedding), batch->ids, batch->rows,
	                                  p->shape.hidden_size, p->vocab_start, p->vocab);
	return wlb_tp_scatter(t, out, addend, batch->rows, error);
}

int wlb_embedding_backward(struct wlb_transformer *t, const void *d_out, const struct wlb_micro_batch *batch,
                           struct wlb_error *error)
{
	const struct wlb_parameters *p = t->parameters;
	const void *all;
	if (wlb_tp_gather(t, d_out, batch->rows, &all, error) < 0)
		return -1;
	t->device->ops->embedding_backward(t->device, wlb_gradient(p, p->embedding), all, batch->ids, batch->rows,
	                                   p->shape.hidden_size, p->vocab_start, p->vocab);
	return 0;
}
