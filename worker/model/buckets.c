/* Places a rank's tensors into buckets, which follow each other in its flat buffers. */
#include <stdlib.h>

#include "worker/model/partition.h"

enum { ALIGN_ELEMENTS = 16 }; /* every matrix of a product begins at a multiple of 32 bytes or more */

static size_t round_up(size_t n, size_t multiple)
{
	return (n + multiple - 1) / multiple * multiple;
}

static void open_bucket(struct wlb_parameters *p, enum wlb_bucket_kind kind, int owned)
{
	p->buckets[p->bucket_count++] = (struct wlb_bucket){.kind = kind, .offset = p->elements, .owned = owned};
}

/* Places a tensor in the open bucket, right after what is there. */
static void place(struct wlb_parameters *p, int tensor)
{
	struct wlb_tensor *t = &p->tensors[tensor];
	struct wlb_bucket *bucket = &p->buckets[p->bucket_count - 1];
	t->bucket = p->bucket_count - 1;
	t->owned = bucket->owned;
	t->offset = bucket->offset + bucket->elements;
	bucket->elements += (size_t)wlb_tensor_block_elements(&t->block);
	bucket->last = tensor;
}

/* Pads the open bucket to a multiple of so many elements. */
static void pad(struct wlb_parameters *p, size_t multiple)
{
	struct wlb_bucket *bucket = &p->buckets[p->bucket_count - 1];
	size_t before = bucket->elements;
	bucket->elements = round_up(before, multiple);
	p->tensors[bucket->last].padding += bucket->elements - before;
}

static void put(struct wlb_parameters *p, int tensor)
{
	place(p, tensor);
	pad(p, ALIGN_ELEMENTS);
}

static void close_bucket(struct wlb_parameters *p, int chunk, int layer)
{
	struct wlb_bucket *bucket = &p->buckets[p->bucket_count - 1];
	pad(p, ALIGN_ELEMENTS * (size_t)p->shards);
	bucket->chunk = chunk;
	bucket->layer = layer;
	p->elements = bucket->offset + bucket->elements;
}

/* Places the tensors `first` to `last`, which are multiplied as one matrix, without gaps. */
static void put_joined(struct wlb_parameters *p, int first, int last)
{
	for (int i = first; i <= last; i++)
		place(p, i);
	pad(p, ALIGN_ELEMENTS);
}

static void put_matrices(struct wlb_parameters *p, const struct wlb_layer_tensors *t, int kv_shared)
{
	put_joined(p, t->q, kv_shared ? t->q : t->v);
	put(p, t->o);
	put_joined(p, t->gate, t->up);
	put(p, t->down);
}

/* Places the matrices of a chunk's layers, the last layer first. */
static void bucket_layers(struct wlb_parameters *p, int chunk, int kv_shared)
{
	const struct wlb_chunk *c = &p->chunks[chunk];
	for (int l = c->layers - 1; l >= 0;) {
		open_bucket(p, WLB_BUCKET_MATRICES, 1);
		do
			put_matrices(p, &c->tensors[l--], kv_shared);
		while (l >= 0 && p->buckets[p->bucket_count - 1].elements < WLB_BUCKET_ELEMENTS);
		close_bucket(p, chunk, l + 1);
	}
}

/* A stage may have the embedding or the head alone. */
static int has_layers(const struct wlb_parameters *p)
{
	int layers = 0;
	for (int c = 0; c < p->chunk_count; c++)
		layers += p->chunks[c].layers;
	return layers > 0;
}

/* Puts what of a layer is in a bucket of that kind; `kv_shared`: several ranks hold its keys and values. */
typedef void put_part(struct wlb_parameters *p, const struct wlb_layer_tensors *t, int kv_shared);

static int is_head_norm(const struct wlb_parameters *p)
{
	return wlb_family(p->shape.family)->qk_norm == WLB_QK_NORM_HEAD;
}

static void put_norms(struct wlb_parameters *p, const struct wlb_layer_tensors *t, int kv_shared)
{
	(void)kv_shared;
	const int norms[] = {t->input_norm, t->attention_norm, t->post_norm, t->mlp_norm};
	for (size_t i = 0; i < sizeof(norms) / sizeof(norms[0]); i++)
		if (norms[i] >= 0)
			put(p, norms[i]);
	if (is_head_norm(p)) {
		put(p, t->q_norm);
		put(p, t->k_norm);
	}
}

static void put_vectors(struct wlb_parameters *p, const struct wlb_layer_tensors *t, int kv_shared)
{
	if (t->q_bias >= 0)
		put_joined(p, t->q_bias, kv_shared ? t->q_bias : t->v_bias);
	if (t->q_norm < 0 || is_head_norm(p))
		return;
	put(p, t->q_norm);
	if (!kv_shared)
		put(p, t->k_norm);
}

static void put_shared_kv(struct wlb_parameters *p, const struct wlb_layer_tensors *t, int kv_shared)
{
	(void)kv_shared;
	put_joined(p, t->k, t->v);
}

static void put_kv_vectors(struct wlb_parameters *p, const struct wlb_layer_tensors *t, int kv_shared)
{
	(void)kv_shared;
	if (t->k_bias >= 0)
		put_joined(p, t->k_bias, t->v_bias);
	if (t->k_norm >= 0 && !is_head_norm(p))
		put(p, t->k_norm);
}

/* Makes a bucket of a part of all layers, and the final norm in that of the norms. */
static void bucket_part(struct wlb_parameters *p, enum wlb_bucket_kind kind, int owned, put_part *put_of_layer,
                        int kv_shared)
{
	int norm = kind == WLB_BUCKET_NORMS ? p->final_norm : -1;
	if (norm < 0 && !has_layers(p))
		return;
	open_bucket(p, kind, owned);
	if (norm >= 0)
		put(p, norm);
	for (int c = p->chunk_count - 1; c >= 0; c--)
		for (int l = p->chunks[c].layers - 1; l >= 0; l--)
			put_of_layer(p, &p->chunks[c].tensors[l], kv_shared);
	close_bucket(p, 0, 0);
}

/* Whether the model has biases, or norms of all heads together. */
static int has_vectors(const struct wlb_parameters *p)
{
	const struct wlb_family_row *family = wlb_family(p->shape.family);
	return family->qkv_biases || family->qk_norm == WLB_QK_NORM_ALL;
}

static void bucket_one(struct wlb_parameters *p, int tensor, enum wlb_bucket_kind kind, int owned, int chunk, int layer)
{
	open_bucket(p, kind, owned);
	put(p, tensor);
	close_bucket(p, chunk, layer);
}

/* Whether a bucket's gradients are complete, and can be reduced, after each backward pass: those of one part of the
 * model alone. A tied embedding that is on one rank is its head, too. */
static int can_pass(const struct wlb_parameters *p, const struct wlb_bucket *bucket)
{
	return p->shards > 1 && bucket->kind == WLB_BUCKET_MATRICES &&
	       (bucket->last != p->embedding || p->embedding != p->head);
}

/* Places the buckets that pass at the bottom and at the top of one piece of memory by turns, behind all others. */
static void place_gradients(struct wlb_parameters *p, int zero_stage)
{
	size_t kept = 0, passing = 0, before = 0;
	int is_top = 0;
	for (int i = 0; i < p->bucket_count; i++) {
		struct wlb_bucket *bucket = &p->buckets[i];
		bucket->is_passing = zero_stage > 1 && can_pass(p, bucket);
		if (bucket->is_passing) {
			passing = before + bucket->elements > passing ? before + bucket->elements : passing;
			before = bucket->elements;
		} else {
			bucket->gradient_offset = kept;
			kept += bucket->elements;
		}
	}
	p->gradient_elements = kept + passing;
	for (int i = 0; i < p->bucket_count; i++) {
		struct wlb_bucket *bucket = &p->buckets[i];
		if (!bucket->is_passing)
			continue;
		bucket->gradient_offset = is_top ? p->gradient_elements - bucket->elements : kept;
		is_top = !is_top;
	}
}

/* Makes all buckets, in the order of the backward pass. */
int wlb_parameters_bucket(struct wlb_parameters *p, const struct wlb_plan *plan, const struct wlb_coordinates *coords,
                          struct wlb_error *error)
{
	const struct wlb_layout *layout = &plan->layout;
	int sharing = p->shape.num_key_value_heads < layout->tp ? layout->tp / (int)p->shape.num_key_value_heads : 1;
	int last = p->chunk_count - 1;
	int tied = p->shape.tie_word_embeddings && layout->pp > 1;
	enum wlb_bucket_kind embedding = tied ? WLB_BUCKET_TIED : WLB_BUCKET_MATRICES;
	enum wlb_bucket_kind head = plan->shared_head ? WLB_BUCKET_TIED : embedding;
	p->shards = layout->dp * layout->cp;
	p->micro_batches = plan->micro_batches;
	p->buckets = calloc((size_t)p->count, sizeof(*p->buckets)); /* each has a tensor at least */
	if (p->buckets == NULL)
		return wlb_fail(error, "out of memory for the table of buckets");
	if (p->head >= 0 && p->head != p->embedding)
		bucket_one(p, p->head, head, !tied && coords->pp == layout->pp - 1, last, p->chunks[last].layers);
	for (int chunk = last; chunk >= 0; chunk--)
		bucket_layers(p, chunk, sharing > 1);
	bucket_part(p, WLB_BUCKET_NORMS, coords->tp == 0, put_norms, sharing > 1);
	if (has_vectors(p))
		bucket_part(p, WLB_BUCKET_VECTORS, 1, put_vectors, sharing > 1);
	if (sharing > 1)
		bucket_part(p, WLB_BUCKET_KV, coords->tp % sharing == 0, put_shared_kv, 1);
	if (sharing > 1 && has_vectors(p))
		bucket_part(p, WLB_BUCKET_KV_VECTORS, coords->tp % sharing == 0, put_kv_vectors, 1);
	if (p->embedding >= 0)
		bucket_one(p, p->embedding, embedding, 1, 0, -1);
	place_gradients(p, plan->zero_stage);
	return 0;
}
