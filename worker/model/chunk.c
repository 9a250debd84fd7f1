/* The passes through the layers of a chunk, with the embedding on the first. Each tensor-parallel rank holds a slice of
 * the vocabulary. */
#include <math.h>

#include "worker/model/gathered_weights.h"
#include "worker/model/gradients.h"
#include "worker/model/layer.h"
#include "worker/model/tensor_parallel.h"

/* Returns what the family multiplies rows of the embedding by, as Transformers does: as an element of the device. */
static double embedding_scale(const struct wlb_transformer *t)
{
	const struct wlb_model *m = &t->parameters->shape;
	double element;
	wlb_dtype_store(t->device->compute, &element, 0, sqrt((double)m->hidden_size));
	return wlb_family(m->family)->scales_embedding ? wlb_dtype_load(t->device->compute, &element, 0) : 1.0;
}

static void scale_rows(struct wlb_transformer *t, void *x, int64_t n)
{
	double scale = embedding_scale(t);
	if (scale != 1.0)
		t->device->ops->scale(t->device, x, scale, wlb_share_elements(t, n));
}

/* out[n / tp, h] = the rows of batch->ids; the sum of A runs beside the rows of B */
static int embed(struct wlb_transformer *t, void *out, const struct wlb_micro_batch *batch, struct wlb_error *error)
{
	const struct wlb_parameters *p = t->parameters;
	const struct wlb_tp_pieces pieces = wlb_tp_pieces_of(batch);
	void *addend = wlb_tp_rows(t, t->scratch.addend, out);
	if (wlb_weights_await(p, p->embedding, p->embedding, error) < 0)
		return -1;
	struct wlb_comm_request *sums[2] = {NULL};
	for (int i = 0; i < pieces.count; i++) {
		struct wlb_tp_piece piece = pieces.piece[i];
		void *rows = wlb_element(t->device->compute, addend, piece.first * p->shape.hidden_size);
		t->device->ops->embedding_forward(t->device, rows, wlb_weight(p, p->embedding),
		                                  batch->ids + piece.first, piece.count, p->shape.hidden_size,
		                                  p->vocab_start, p->vocab);
		if (wlb_tp_reduce_scatter_start(t, out, addend, piece, &sums[i], error) < 0)
			return -1;
	}
	if (wlb_comm_wait(sums[0], error) < 0 || wlb_comm_wait(sums[1], error) < 0)
		return -1;
	scale_rows(t, out, batch->rows);
	return 0;
}

/* d_out[n / tp, h] is the gradient of `out`, which the first layer has begun to gather, unless rows are scaled. B is
 * gathered beside the sums of A. */
static int embed_backward(struct wlb_transformer *t, void *d_out, const struct wlb_micro_batch *batch,
                          struct wlb_error *error)
{
	const struct wlb_parameters *p = t->parameters;
	const struct wlb_tp_pieces pieces = wlb_tp_pieces_of(batch);
	void *all = wlb_tp_rows(t, t->scratch.addend, d_out);
	scale_rows(t, d_out, batch->rows);
	for (int i = 0; !t->has_begun && i < pieces.count; i++)
		if (wlb_tp_all_gather_start(t, all, d_out, pieces.piece[i], &t->rows[i], error) < 0)
			return -1;
	t->has_begun = 0;
	for (int i = 0; i < pieces.count; i++) {
		struct wlb_tp_piece piece = pieces.piece[i];
		const void *rows = wlb_element(t->device->compute, all, piece.first * p->shape.hidden_size);
		if (wlb_comm_wait(t->rows[i], error) < 0)
			return -1;
		t->device->ops->embedding_backward(t->device, wlb_gradient_to_add(p, p->embedding), rows,
		                                   batch->ids + piece.first, piece.count, p->shape.hidden_size,
		                                   p->vocab_start, p->vocab);
	}
	return 0;
}

/* The angles of the rotary embeddings are the same in all layers of a kind. A table of all positions would not fit:
 * documents have up to a million tokens. */
static void make_angles(struct wlb_transformer *t, const struct wlb_micro_batch *batch)
{
	for (int kind = 0; kind < wlb_model_angle_kinds(&t->parameters->shape); kind++)
		t->device->ops->rope_angles(t->device, t->scratch.angles[kind], batch->positions, batch->rows,
		                            t->frequencies + kind * t->rotated_pairs, t->rotated_pairs,
		                            t->angles_scale[kind]);
}

/* Sets *layer to layer `l` of the chunk, with its activations in the slot. Returns it; NULL beyond the chunk. */
static const struct wlb_layer *layer_at(const struct wlb_chunk *c, const struct wlb_slot *slot, int l,
                                        struct wlb_layer *layer)
{
	if (l < 0 || l >= c->layers)
		return NULL;
	*layer = (struct wlb_layer){&c->tensors[l], &slot->layers[l]};
	return layer;
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
		struct wlb_layer layer, before, next;
		void *out = l + 1 < c->layers ? slot->layers[l + 1].input : slot->output;
		/* All norms are in one bucket, and those among these tensors with them. */
		if (wlb_weights_await(t->parameters, c->tensors[l].q, c->tensors[l].down, error) < 0 ||
		    wlb_layer_forward(t, layer_at(c, slot, l, &layer), layer_at(c, slot, l - 1, &before),
		                      layer_at(c, slot, l + 1, &next), out, batch, error) < 0)
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
	for (int l = c->layers - 1; l >= 0; l--) {
		struct wlb_layer layer, next;
		if (wlb_layer_backward(t, layer_at(c, slot, l, &layer), layer_at(c, slot, l - 1, &next), slot->output,
		                       batch, error) < 0 ||
		    wlb_layer_done(watch, chunk, l, error) < 0)
			return -1;
	}
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
