/* The passes through the layers of a chunk, with the embedding on the first. Each tensor-parallel rank holds a slice of
 * the vocabulary. */
#include "worker/model/gathered_weights.h"
#include "worker/model/gradients.h"
#include "worker/model/layer.h"
#include "worker/model/tensor_parallel.h"

/* out[n / tp, h] = the rows of batch->ids */
static int embed(struct wlb_transformer *t, void *out, const struct wlb_micro_batch *batch, struct wlb_error *error)
{
	const struct wlb_parameters *p = t->parameters;
	void *addend = wlb_tp_rows(t, t->scratch.addend, out);
	if (wlb_weights_await(p, p->embedding, p->embedding, error) < 0)
		return -1;
	t->device->ops->embedding_forward(t->device, addend, wlb_weight(p, p->embedding), batch->ids, batch->rows,
	                                  p->shape.hidden_size, p->vocab_start, p->vocab);
	return wlb_tp_reduce_scatter(t, out, addend, batch->rows, error);
}

/* d_out[n / tp, h] is the gradient of `out`. */
static int embed_backward(struct wlb_transformer *t, void *d_out, const struct wlb_micro_batch *batch,
                          struct wlb_error *error)
{
	const struct wlb_parameters *p = t->parameters;
	void *all = wlb_tp_rows(t, t->scratch.gathered, d_out);
	if (wlb_tp_all_gather(t, all, d_out, batch->rows, error) < 0)
		return -1;
	t->device->ops->embedding_backward(t->device, wlb_gradient_to_add(p, p->embedding), all, batch->ids,
	                                   batch->rows, p->shape.hidden_size, p->vocab_start, p->vocab);
	return 0;
}

/* The angles of the rotary embeddings are the same in all layers. A table of all positions would not fit: documents
 * have up to a million tokens. */
static void make_angles(struct wlb_transformer *t, const struct wlb_micro_batch *batch)
{
	t->device->ops->rope_angles(t->device, t->scratch.angles, batch->positions, batch->rows, t->frequencies,
	                            t->rotated_pairs, t->angles_scale);
}

int wlb_forward(struct wlb_transformer *t, int chunk, struct wlb_slot *slot, const struct wlb_micro_batch *batch,
                struct wlb_error *error)
{
	const struct wlb_chunk *c = &t->parameters->chunks[chunk];
	if (wlb_slot_take_layers(t, slot, error) < 0)
		return -1;
	if (c->has_embedding && embed(t, slot->input, batch, error) < 0)
		return -1;
	if (c->layers > 0)
		make_angles(t, batch);
	for (int l = 0; l < c->layers; l++) {
		void *out = l + 1 < c->layers ? slot->layers[l + 1].input : slot->output;
		if (wlb_weights_await(t->parameters, c->tensors[l].input_norm, c->tensors[l].down, error) < 0 ||
		    wlb_layer_forward(t, &c->tensors[l], &slot->layers[l], out, batch, error) < 0)
			return -1;
	}
	if (c->layers == 0) /* the chunk is the embedding or the head alone */
		t->device->ops->copy(t->device, slot->output, slot->input,
		                     wlb_bytes(t->device->compute, wlb_share_elements(t, batch->rows)));
	return 0;
}

int wlb_backward(struct wlb_transformer *t, int chunk, struct wlb_slot *slot, const struct wlb_micro_batch *batch,
                 const struct wlb_backward_watch *watch, struct wlb_error *error)
{
	const struct wlb_chunk *c = &t->parameters->chunks[chunk];
	if (c->layers > 0)
		make_angles(t, batch);
	for (int l = c->layers - 1; l >= 0; l--)
		if (wlb_layer_backward(t, &c->tensors[l], &slot->layers[l], slot->output, batch, error) < 0 ||
		    wlb_layer_done(watch, chunk, l, error) < 0)
			return -1;
	wlb_slot_give_layers(t, slot);
	if (!c->has_embedding)
		return 0;
	if (embed_backward(t, slot->output, batch, error) < 0)
		return -1;
	return wlb_layer_done(watch, chunk, -1, error);
}

void wlb_forward_end(struct wlb_transformer *t, struct wlb_slot *slot)
{
	wlb_slot_give_layers(t, slot);
}
