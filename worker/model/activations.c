#include "worker/model/activations.h"

#include <stdbool.h>
#include <stdlib.h>

/* Places buffers one after another in a block: a first pass counts the bytes (base NULL), then the same code sets the
 * pointers. */
struct arena {
	char *base;
	size_t used;
	enum wlb_dtype compute, master;
};

/* The largest widths and numbers of rows. */
struct sizes {
	int64_t share; /* rows of one tensor-parallel rank */
	int64_t rows;
	int64_t tokens;
	int64_t hidden;
	int64_t q;
	int64_t kv;
	int64_t intermediate;
	int64_t groups; /* of queries and keys that are normed */
	int norms_before, norms_after;
};

static void *take_bytes(struct arena *arena, size_t bytes)
{
	void *memory = arena->base != NULL ? arena->base + arena->used : NULL;
	arena->used += (bytes + 63) / 64 * 64;
	return memory;
}

static void *take(struct arena *arena, int64_t rows, int64_t width)
{
	return take_bytes(arena, wlb_bytes(arena->compute, rows * width));
}

static void *take_master(struct arena *arena, int64_t rows, int64_t width)
{
	return take_bytes(arena, wlb_bytes(arena->master, rows * width));
}

static struct sizes sizes_of(const struct wlb_transformer *t)
{
	const struct wlb_parameters *p = t->parameters;
	return (struct sizes){
		.share = (t->max_rows + t->tp_size - 1) / t->tp_size,
		.rows = t->max_rows,
		.tokens = t->max_tokens,
		.hidden = p->shape.hidden_size,
		.q = p->heads * p->shape.head_dim,
		.kv = p->kv_heads * p->shape.head_dim,
		.intermediate = p->intermediate,
		.groups = wlb_query_groups(p) + wlb_key_groups(p),
		.norms_before = wlb_family(p->shape.family)->norms != WLB_NORMS_AFTER,
		.norms_after = wlb_family(p->shape.family)->norms != WLB_NORMS_BEFORE,
	};
}

/* Places what the norms before attention and MLP are kept with, and what those after need of what these gave. */
static void place_norms(struct wlb_layer_activations *layer, const struct sizes *s, struct arena *arena)
{
	if (s->norms_before) {
		layer->rstd = take_master(arena, s->share, 1);
		layer->post_rstd = take_master(arena, s->share, 1);
	}
	if (s->norms_after) {
		layer->given = take(arena, s->share, s->hidden);
		layer->given_rstd = take_master(arena, s->share, 1);
		layer->mlp_given = take(arena, s->share, s->hidden);
		layer->mlp_given_rstd = take_master(arena, s->share, 1);
	}
}

/* Places the activations that each layer keeps unless whole layers are computed again. */
static void place_kept(const struct wlb_transformer *t, struct wlb_layer_activations *layer, const struct sizes *s,
                       struct arena *arena)
{
	layer->qkv = take(arena, s->rows, s->q + 2 * s->kv);
	layer->attention = take(arena, s->rows, s->q);
	layer->lse = take_master(arena, s->rows, t->parameters->heads);
	layer->middle = take(arena, s->share, s->hidden);
	layer->gate_up = take(arena, s->rows, 2 * s->intermediate);
	if (s->groups > 0) {
		layer->raw_qk = take(arena, s->rows, s->q + s->kv);
		layer->qk_squares = take_master(arena, s->rows, s->groups);
	}
	place_norms(layer, s, arena);
}

/* Places the activations that each layer keeps only where nothing is computed again. */
static void place_recomputed(const struct wlb_transformer *t, struct wlb_layer_activations *layer,
                             const struct sizes *s, struct arena *arena)
{
	layer->kv_all = t->has_exchanges ? take(arena, s->tokens, 2 * s->kv) : NULL;
	if (s->norms_before) {
		layer->norm = take(arena, s->share, s->hidden);
		layer->post_norm = take(arena, s->share, s->hidden);
	}
}

enum wlb_recompute wlb_layer_recompute(const struct wlb_transformer *t, int layer)
{
	bool beyond = t->recompute_layers > 0 && layer >= t->recompute_layers;
	return t->recompute == WLB_RECOMPUTE_FULL && beyond ? WLB_RECOMPUTE_SELECTIVE : t->recompute;
}

static void place_slot(const struct wlb_transformer *t, struct wlb_slot *slot, const struct sizes *s,
                       struct arena *arena)
{
	slot->input = take(arena, s->share, s->hidden);
	slot->output = take(arena, s->share, s->hidden);
	if (t->shared_head && t->parameters->final_norm >= 0) {
		slot->normed = take(arena, s->share, s->hidden);
		slot->final_rstd = take_master(arena, s->share, 1);
	}
}

/* Places the activations of a chunk's layers. The input of the first is that of the slot which has them. */
static void place_layers(const struct wlb_transformer *t, struct wlb_layer_activations *layers,
                         const struct wlb_layer_activations *shared, const struct sizes *s, struct arena *arena)
{
	for (int l = 0; l < t->slot_layers; l++) {
		struct wlb_layer_activations *layer = &layers[l];
		*layer = *shared;
		layer->recompute = wlb_layer_recompute(t, l);
		layer->input = l == 0 ? NULL : take(arena, s->share, s->hidden);
		if (layer->recompute != WLB_RECOMPUTE_FULL)
			place_kept(t, layer, s, arena);
		if (layer->recompute == WLB_RECOMPUTE_NONE)
			place_recomputed(t, layer, s, arena);
	}
}

static struct wlb_layer_activations *layers_of(const struct wlb_transformer *t, int number)
{
	return t->layers + (size_t)number * (size_t)t->slot_layers;
}

static void place_slots(struct wlb_transformer *t, const struct sizes *s, struct arena *arena)
{
	struct wlb_layer_activations shared = {0};
	if (t->recompute == WLB_RECOMPUTE_FULL)
		place_kept(t, &shared, s, arena);
	if (t->recompute != WLB_RECOMPUTE_NONE)
		place_recomputed(t, &shared, s, arena);
	for (int i = 0; i < t->slot_count; i++)
		place_slot(t, &t->slots[i], s, arena);
	for (int i = 0; i < t->in_flight_count; i++)
		place_layers(t, layers_of(t, i), &shared, s, arena);
}

/* Starts a place at `begin` for buffers that are used when those placed after it before are not: *end is the end of
 * the largest. */
static void place_again(struct arena *arena, size_t begin, size_t *end)
{
	if (arena->used > *end)
		*end = arena->used;
	arena->used = begin;
}

/* Places what is used one at a time on a device's queue: the gradients in a layer's attention, the gated product of its
 * MLP, and the logits of the head, which has no use of the angles either. */
static void place_layer_or_head(struct wlb_transformer *t, const struct sizes *s, struct arena *arena)
{
	struct wlb_scratch *scratch = &t->scratch;
	size_t begin = arena->used, end = begin;
	for (int kind = 0; kind < wlb_model_angle_kinds(&t->parameters->shape); kind++)
		scratch->angles[kind] = take_master(arena, s->rows, 2 * t->rotated_pairs);
	size_t gradients = arena->used;
	scratch->d_qkv = take(arena, s->rows, s->q + 2 * s->kv);
	scratch->d_attention = take(arena, s->rows, s->q);
	scratch->qk_products = take_master(arena, s->rows, s->groups);
	place_again(arena, gradients, &end);
	scratch->activated = take(arena, s->rows, s->intermediate);
	place_again(arena, begin, &end);
	if (t->parameters->head >= 0) {
		scratch->logits = take(arena, t->logit_rows, t->parameters->vocab);
		scratch->statistics = take_master(arena, t->tp_size * t->logit_rows, 3);
	}
	place_again(arena, begin, &end);
	arena->used = end;
}

static void place_scratch(struct wlb_transformer *t, const struct sizes *s, struct arena *arena)
{
	struct wlb_scratch *scratch = &t->scratch;
	*scratch = (struct wlb_scratch){.d_norm = take(arena, s->share, s->hidden)};
	place_layer_or_head(t, s, arena);
	if (t->tp_size > 1) {
		scratch->gathered = take(arena, s->rows, s->hidden);
		scratch->addend = take(arena, s->rows, s->hidden);
	}
	if (t->has_exchanges) {
		scratch->d_kv_all = take(arena, s->tokens > s->rows ? s->tokens : s->rows, 2 * s->kv);
		scratch->kv_ranks = take(arena, t->key_ranks * s->rows, 2 * s->kv);
	}
	if (t->parameters->final_norm >= 0) {
		scratch->final_norm = take(arena, s->share, s->hidden);
		scratch->final_rstd = take_master(arena, s->share, 1);
	}
}

/* Returns the most rows of a tensor-parallel rank whose head a stage computes. */
static int64_t head_rows(const struct wlb_transformer *t, int64_t share)
{
	int64_t stages = t->shared_head ? t->groups->layout.pp : 1;
	return (share + stages - 1) / stages;
}

static void place(struct wlb_transformer *t, struct arena *arena)
{
	struct sizes s = sizes_of(t);
	place_slots(t, &s, arena);
	place_scratch(t, &s, arena);
	if (!t->shared_head)
		return;
	int is_last = t->parameters->final_norm >= 0;
	t->head_buffers = (struct wlb_head_buffers){
		.rows = is_last ? NULL : take(arena, head_rows(t, s.share), s.hidden),
		.d_rows = take(arena, is_last ? s.share : head_rows(t, s.share), s.hidden),
	};
}

/* Allocates the slots and the tables of layers in host memory. Returns 0, or -1 if out of memory. */
static int allocate_slots(struct wlb_transformer *t, struct wlb_error *error)
{
	const struct wlb_parameters *p = t->parameters;
	for (int c = 0; c < p->chunk_count; c++)
		if (p->chunks[c].layers > t->slot_layers)
			t->slot_layers = p->chunks[c].layers;
	t->slots = calloc((size_t)t->slot_count, sizeof(*t->slots));
	t->layers = calloc((size_t)t->in_flight_count * (size_t)t->slot_layers, sizeof(*t->layers));
	t->unused = calloc((size_t)t->in_flight_count, sizeof(*t->unused));
	if (t->slots == NULL || t->layers == NULL || t->unused == NULL)
		return wlb_fail(error, "out of memory for the table of activations");
	for (int i = 0; i < t->in_flight_count; i++)
		t->unused[t->unused_count++] = layers_of(t, i);
	return 0;
}

int wlb_slot_take_layers(struct wlb_transformer *t, struct wlb_slot *slot, struct wlb_error *error)
{
	if (slot->layers != NULL)
		return 0;
	if (t->unused_count == 0)
		return wlb_fail(error, "a forward pass while %d micro-batches, the most, wait for their backward pass",
		                t->in_flight_count);
	slot->layers = t->unused[--t->unused_count];
	if (t->slot_layers > 0)
		slot->layers[0].input = slot->input;
	return 0;
}

void wlb_slot_give_layers(struct wlb_transformer *t, struct wlb_slot *slot)
{
	t->unused[t->unused_count++] = slot->layers;
	slot->layers = NULL;
}

/* The frequencies of the rotary embeddings are apart from the block: they are set once. */
static int set_frequencies(struct wlb_transformer *t, struct wlb_error *error)
{
	int kinds = wlb_model_angle_kinds(&t->parameters->shape);
	size_t bytes = (size_t)(kinds * t->rotated_pairs) * sizeof(*t->frequencies);
	double *frequencies_host = malloc(bytes);
	if (frequencies_host == NULL)
		return wlb_fail(error, "out of memory for the frequencies of rotary embeddings");
	t->frequencies = t->device->ops->alloc(t->device, bytes, error);
	if (t->frequencies == NULL) {
		free(frequencies_host);
		return wlb_fail_in(error, "the frequencies of rotary embeddings");
	}
	for (int kind = 0; kind < kinds; kind++)
		t->angles_scale[kind] = wlb_rope_frequencies(&t->parameters->shape, (enum wlb_angles)kind,
		                                             frequencies_host + kind * t->rotated_pairs);
	t->device->ops->to_device(t->device, NULL, t->frequencies, frequencies_host, bytes);
	free(frequencies_host);
	return 0;
}

/* The most columns of a bias, or of norms of queries. */
static int64_t columns_of(const struct wlb_parameters *p)
{
	const struct wlb_family_row *family = wlb_family(p->shape.family);
	int has_vectors = family->qkv_biases || family->qk_norm != WLB_QK_NORM_NONE;
	return has_vectors ? (p->heads + 2 * (int64_t)p->kv_heads) * p->shape.head_dim : 0;
}

/* Reserves what the device's operations need for themselves. */
static int reserve(const struct wlb_transformer *t, struct wlb_error *error)
{
	const struct wlb_largest_pass largest = {
		.rows = t->max_rows,
		.width = t->parameters->shape.hidden_size,
		.heads = (int)t->parameters->heads,
		.columns = columns_of(t->parameters),
	};
	return t->device->ops->reserve != NULL ? t->device->ops->reserve(t->device, &largest, error) : 0;
}

static int take_block(struct wlb_transformer *t, struct wlb_error *error)
{
	struct arena arena = {.compute = t->device->compute, .master = t->device->master};
	place(t, &arena);
	t->bytes = arena.used;
	t->block = t->device->ops->alloc(t->device, t->bytes, error);
	if (t->block == NULL)
		return wlb_fail_in(error, "activations of %d micro-batches of up to %lld rows", t->in_flight_count,
		                   (long long)t->max_rows);
	arena.base = t->block;
	arena.used = 0;
	place(t, &arena);
	return 0;
}

struct wlb_transformer *wlb_transformer_new(const struct wlb_parameters *parameters, const struct wlb_groups *groups,
                                            const struct wlb_plan *split, int in_flight, int slots, int64_t max_rows,
                                            int64_t max_tokens, struct wlb_error *error)
{
	struct wlb_transformer *t = calloc(1, sizeof(*t));
	if (t == NULL) {
		wlb_fail(error, "out of memory for the table of activations");
		return NULL;
	}
	*t = (struct wlb_transformer){
		.parameters = parameters,
		.device = parameters->device,
		.groups = groups,
		.tp = groups->tp,
		.tp_size = wlb_comm_size(groups->tp),
		.key_ranks = split->dynamic_cp > 0 ? split->dynamic_cp : wlb_comm_size(groups->cp),
		.has_exchanges = wlb_comm_size(split->dynamic_cp > 0 ? groups->data : groups->cp) > 1,
		.recompute = split->recompute,
		.recompute_layers = split->recompute_layers,
		.rotated_pairs = (int)wlb_model_rotary_dim(&parameters->shape) / 2,
		.max_rows = max_rows,
		.max_tokens = max_tokens,
		.slot_count = slots,
		.in_flight_count = in_flight,
		.shared_head = split->shared_head,
	};
	/* The targets of a share of the rows are apart for each tensor-parallel rank, and so are the products. */
	int64_t rows = t->shared_head ? head_rows(t, sizes_of(t).share) : max_rows;
	t->logit_rows = wlb_logit_rows(rows, parameters->shape.vocab_size, t->tp_size,
	                               (int64_t)wlb_dtype_bytes(t->device->compute));
	if (allocate_slots(t, error) == 0 && take_block(t, error) == 0 && set_frequencies(t, error) == 0 &&
	    reserve(t, error) == 0)
		return t;
	wlb_transformer_free(t);
	return NULL;
}

void wlb_transformer_free(struct wlb_transformer *t)
{
	if (t == NULL)
		return;
	t->device->ops->release(t->device, t->block);
	t->device->ops->release(t->device, t->frequencies);
	free(t->slots);
	free(t->layers);
	free(t->unused);
	free(t);
}

struct wlb_head_buffers wlb_transformer_head_buffers(const struct wlb_transformer *t)
{
	return t->head_buffers;
}

struct wlb_slot *wlb_transformer_slot(struct wlb_transformer *t, int slot)
{
	return &t->slots[slot];
}
