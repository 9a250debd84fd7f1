/* The passes through the layers of a chunk, with the embedding on the first. */
#include "worker/model/embedding.h"
#include "worker/model/layer.h"

int wlb_forward(struct wlb_transformer *t, int chunk, struct wlb_slot *slot, const struct wlb_micro_batch *batch,
                struct wlb_error *error)
{
	const struct wlb_chunk *c = &t->parameters->chunks[chunk];
	if (c->has_embedding && wlb_embedding(t, slot->input, batch, error) < 0)
		return -1;
	for (int l = 0; l < c->layers; l++) {
		void *out = l + 1 < c->layers ? slot->layers[l + 1].input : slot->output;
		if (wlb_layer_forward(t, &c->tensors[l], &slot->layers[l], out, batch, error) < 0)
			return -1;
	}
	if (c->layers == 0) /* the chunk is the embedding or the head alone */
		t->device->ops->copy(t->device, slot->output, slot->input,
		                     wlb_bytes(t, batch->rows / t->tp_size * t->parameters->shape.hidden_size));
	return 0;
}

int wlb_backward(struct wlb_transformer *t, int chunk, struct wlb_slot *slot, const struct wlb_micro_batch *batch,
                 const struct wlb_backward_watch *watch, struct wlb_error *error)
{
	const struct wlb_chunk *c = &t->parameters->chunks[chunk];
	for (int l = c->layers - 1; l >= 0; l--)
		if (wlb_layer_backward(t, &c->tensors[l], &slot->layers[l], slot->output, batch, error) < 0 ||
		    wlb_layer_done(watch, chunk, l, error) < 0)
			return -1;
	if (!c->has_embedding)
		return 0;
	if (wlb_embedding_backward(t, slot->output, batch, error) < 0)
		return -1;
	return wlb_layer_done(watch, chunk, -1, error);
}
