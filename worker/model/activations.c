#include <stdlib.h>

#include "worker/model/transformer.h"

/* Lays buffers one after another in a block that is not there yet: first the offsets are counted (base NULL),
 * then the same walk gives pointers. */
struct arena {
	char *base;
	size_t used;
	size_t real_bytes;
	size_t tokens;
};

static void *take(struct arena *arena, int64_t width)
{
	size_t bytes = arena->tokens * (size_t)width * arena->real_bytes;
	void *at = arena->base != NULL ? arena->base + arena->used : NULL;
	arena->used += (bytes + 63) / 64 * 64;
	return at;
}

static void place_layer(struct wlb_layer_activations *layer, const struct wlb_model *m, struct arena *arena)
{
	int64_t h = m->hidden_size, f = m->intermediate_size;
	int64_t q = m->num_attention_heads * m->head_dim, kv = m->num_key_value_heads * m->head_dim;
	*layer = (struct wlb_layer_activations){
		.input = take(arena, h),
		.norm = take(arena, h),
		.rstd = take(arena, 1),
		.q = take(arena, q),
		.k = take(arena, kv),
		.v = take(arena, kv),
		.attention = take(arena, q),
		.lse = take(arena, m->num_attention_heads),
		.middle = take(arena, h),
		.post_norm = take(arena, h),
		.post_rstd = take(arena, 1),
		.gate = take(arena, f),
		.up = take(arena, f),
		.activated = take(arena, f),
	};
}

static void place(struct wlb_activations *a, const struct wlb_model *m, struct arena *arena)
{
	int64_t h = m->hidden_size, f = m->intermediate_size;
	int64_t q = m->num_attention_heads * m->head_dim, kv = m->num_key_value_heads * m->head_dim;
	for (int l = 0; l < a->num_layers; l++)
		place_layer(&a->layers[l], m, arena);
	a->output = take(arena, h);
	a->final_norm = take(arena, h);
	a->final_rstd = take(arena, 1);
	a->logits = take(arena, m->vocab_size);
	a->d_residual = take(arena, h);
	a->d_norm = take(arena, h);
	a->d_q = take(arena, q);
	a->d_k = take(arena, kv);
	a->d_v = take(arena, kv);
	a->d_attention = take(arena, q);
	a->d_gate = take(arena, f);
	a->d_up = take(arena, f);
	a->d_activated = take(arena, f);
}

struct wlb_activations *wlb_activations_new(const struct wlb_model *shape, struct wlb_device *device,
                                            int64_t max_tokens, struct wlb_error *error)
{
	struct wlb_activations *a = calloc(1, sizeof(*a));
	if (a == NULL) {
		wlb_fail(error, "out of memory for the table of activations");
		return NULL;
	}
	a->device = device;
	a->max_tokens = max_tokens;
	a->num_layers = (int)shape->num_hidden_layers;
	a->layers = calloc((size_t)a->num_layers, sizeof(*a->layers));
	struct arena arena = {.real_bytes = wlb_dtype_bytes(device->dtype), .tokens = (size_t)max_tokens};
	if (a->layers != NULL) {
		place(a, shape, &arena);
		a->block = device->ops->alloc(device, arena.used, error);
	}
	if (a->block == NULL) {
		wlb_fail(error,
		         "out of memory: activations of micro-batches of %lld tokens take %zu bytes; lower "
		         "--max-tokens-per-micro-batch or --seq-length",
		         (long long)max_tokens, arena.used);
		wlb_activations_free(a);
		return NULL;
	}
	arena.base = a->block;
	arena.used = 0;
	place(a, shape, &arena);
	return a;
}

void wlb_activations_free(struct wlb_activations *a)
{
	if (a == NULL)
		return;
	a->device->ops->release(a->device, a->block);
	free(a->layers);
	free(a);
}
