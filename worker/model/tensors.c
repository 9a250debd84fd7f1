/* Lists the tensors that a rank has, and the block of each. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "worker/model/partition.h"

enum {
	LAYER_TENSORS = sizeof(struct wlb_layer_tensors) / sizeof(int),
	OTHER_TENSORS = 3, /* embedding, final norm, head */
};

struct range {
	int64_t start;
	int64_t count;
};

/* Returns part `index` of the `count` parts of 0 to total - 1, which are as even as they can be. */
static struct range part_of(int64_t total, int index, int count)
{
	int64_t start = total * index / count;
	return (struct range){start, total * (index + 1) / count - start};
}

static struct range all_of(int64_t total)
{
	return (struct range){0, total};
}

/* The heads, MLP width and vocabulary of this rank, as rows of the matrices that compute them. */
struct cut {
	struct range q;
	struct range kv;
	struct range intermediate;
	struct range vocab;
};

static struct cut cut_for(const struct wlb_model *m, int tp, int index)
{
	int64_t d = m->head_dim, kv_heads = m->num_key_value_heads;
	struct range heads = part_of(m->num_attention_heads, index, tp);
	struct range keys = kv_heads >= tp ? part_of(kv_heads, index, tp) : (struct range){kv_heads * index / tp, 1};
	return (struct cut){
		.q = {heads.start * d, heads.count * d},
		.kv = {keys.start * d, keys.count * d},
		.intermediate = part_of(m->intermediate_size, index, tp),
		.vocab = part_of(m->vocab_size, index, tp),
	};
}

/* Adds a tensor to the table: the block `rows` x `cols` of the whole tensor. Returns its index. */
__attribute__((format(printf, 7, 8))) static int add(struct wlb_parameters *p, enum wlb_init init, int64_t global_rows,
                                                     struct range rows, int64_t global_cols, struct range cols,
                                                     const char *name, ...)
{
	struct wlb_tensor *tensor = &p->tensors[p->count];
	*tensor = (struct wlb_tensor){
		.block = {.dimensions = init == WLB_INIT_ONES || init == WLB_INIT_ZEROS ? 1 : 2,
	                  .global_rows = global_rows,
	                  .global_cols = global_cols,
	                  .row_start = rows.start,
	                  .rows = rows.count,
	                  .col_start = cols.start,
	                  .cols = cols.count},
		.init = init,
	};
	va_list args;
	va_start(args, name);
	vsnprintf(tensor->name, sizeof(tensor->name), name, args);
	va_end(args);
	return p->count++;
}

static enum wlb_init norm_init(const struct wlb_parameters *p)
{
	return wlb_family(p->shape.family)->norms_add_one ? WLB_INIT_ZEROS : WLB_INIT_ONES;
}

static int add_norm(struct wlb_parameters *p, const char *name)
{
	int64_t h = p->shape.hidden_size;
	return add(p, norm_init(p), h, all_of(h), 1, all_of(1), "%s", name);
}

/* Returns -1 where the family has no such norm. */
static int add_layer_norm(struct wlb_parameters *p, int is_there, int layer, const char *part)
{
	if (!is_there)
		return -1;
	char name[sizeof(p->tensors[0].name)];
	snprintf(name, sizeof(name), "model.layers.%d.%s.weight", layer, part);
	return add_norm(p, name);
}

/* Adds a matrix from the residual stream: its outputs are cut. */
static int add_in(struct wlb_parameters *p, int layer, const char *part, int64_t outputs, struct range rows)
{
	int64_t h = p->shape.hidden_size;
	return add(p, WLB_INIT_NORMAL, outputs, rows, h, all_of(h), "model.layers.%d.%s.weight", layer, part);
}

/* Adds a matrix into the residual stream: its inputs are cut. */
static int add_out(struct wlb_parameters *p, int layer, const char *part, int64_t inputs, struct range cols)
{
	int64_t h = p->shape.hidden_size;
	return add(p, WLB_INIT_OUTPUT, h, all_of(h), inputs, cols, "model.layers.%d.%s.weight", layer, part);
}

/* Adds a vector of which this rank holds a range; -1 where the family has none. */
static int add_vector(struct wlb_parameters *p, int is_there, enum wlb_init init, int layer, const char *part,
                      int64_t elements, struct range range)
{
	if (!is_there)
		return -1;
	return add(p, init, elements, range, 1, all_of(1), "model.layers.%d.self_attn.%s", layer, part);
}

/* A norm of single heads has one weight for all of them. */
static int add_head_norm(struct wlb_parameters *p, int layer, const char *part, int64_t width, struct range range)
{
	enum wlb_qk_norm kind = wlb_family(p->shape.family)->qk_norm;
	int64_t d = p->shape.head_dim;
	if (kind == WLB_QK_NORM_HEAD)
		return add_vector(p, 1, norm_init(p), layer, part, d, all_of(d));
	return add_vector(p, kind == WLB_QK_NORM_ALL, norm_init(p), layer, part, width, range);
}

static struct wlb_layer_tensors add_layer(struct wlb_parameters *p, const struct cut *cut, int l)
{
	const struct wlb_model *m = &p->shape;
	int64_t q = m->num_attention_heads * m->head_dim, kv = m->num_key_value_heads * m->head_dim;
	int64_t f = m->intermediate_size;
	const struct wlb_family_row *family = wlb_family(m->family);
	int biases = family->qkv_biases, before = family->norms != WLB_NORMS_AFTER;
	int after = family->norms != WLB_NORMS_BEFORE;
	return (struct wlb_layer_tensors){
		.input_norm = add_layer_norm(p, before, l, "input_layernorm"),
		.q = add_in(p, l, "self_attn.q_proj", q, cut->q),
		.k = add_in(p, l, "self_attn.k_proj", kv, cut->kv),
		.v = add_in(p, l, "self_attn.v_proj", kv, cut->kv),
		.q_bias = add_vector(p, biases, WLB_INIT_ZEROS, l, "q_proj.bias", q, cut->q),
		.k_bias = add_vector(p, biases, WLB_INIT_ZEROS, l, "k_proj.bias", kv, cut->kv),
		.v_bias = add_vector(p, biases, WLB_INIT_ZEROS, l, "v_proj.bias", kv, cut->kv),
		.q_norm = add_head_norm(p, l, "q_norm.weight", q, cut->q),
		.k_norm = add_head_norm(p, l, "k_norm.weight", kv, cut->kv),
		.o = add_out(p, l, "self_attn.o_proj", q, cut->q),
		.attention_norm = add_layer_norm(p, after, l, "post_attention_layernorm"),
		.post_norm =
			add_layer_norm(p, before, l, after ? "pre_feedforward_layernorm" : "post_attention_layernorm"),
		.mlp_norm = add_layer_norm(p, after, l, "post_feedforward_layernorm"),
		.gate = add_in(p, l, "mlp.gate_proj", f, cut->intermediate),
		.up = add_in(p, l, "mlp.up_proj", f, cut->intermediate),
		.down = add_out(p, l, "mlp.down_proj", f, cut->intermediate),
		.has_rope = wlb_model_layer_rotates(m, l),
		.window = (int)wlb_model_layer_window(m, l),
		.angles = wlb_model_layer_angles(m, l),
	};
}

static int add_vocabulary(struct wlb_parameters *p, const struct cut *cut, const char *name)
{
	int64_t h = p->shape.hidden_size;
	return add(p, WLB_INIT_NORMAL, p->shape.vocab_size, cut->vocab, h, all_of(h), "%s", name);
}

/* Makes the table of tensors, in the order of the forward pass. */
static void make_table(struct wlb_parameters *p, const struct cut *cut, int is_last_stage)
{
	static const char embedding[] = "model.embed_tokens.weight";
	const struct wlb_chunk *last = &p->chunks[p->chunk_count - 1];
	int tied = p->shape.tie_word_embeddings;
	p->embedding = p->chunks[0].has_embedding ? add_vocabulary(p, cut, embedding) : -1;
	for (int c = 0; c < p->chunk_count; c++)
		for (int l = 0; l < p->chunks[c].layers; l++)
			p->chunks[c].tensors[l] = add_layer(p, cut, p->chunks[c].first_layer + l);
	p->final_norm = is_last_stage ? add_norm(p, "model.norm.weight") : -1;
	if (!last->has_head)
		p->head = -1;
	else if (tied && p->embedding >= 0)
		p->head = p->embedding;
	else
		p->head = add_vocabulary(p, cut, tied ? embedding : "lm_head.weight");
}

/* Makes the rank's chunks, without their tensors. Returns how many layers they have. */
static int make_chunks(struct wlb_parameters *p, const struct wlb_plan *plan, int stage)
{
	int layers = 0, pp = plan->layout.pp;
	for (int c = 0; c < p->chunk_count; c++) {
		struct wlb_chunk *chunk = &p->chunks[c];
		chunk->first_layer = (int)wlb_plan_first_layer(plan, &p->shape, stage, c);
		chunk->layers = (int)wlb_plan_layers(plan, &p->shape, stage, c);
		chunk->has_embedding = stage == 0 && c == 0;
		chunk->has_head = (stage == pp - 1 || plan->shared_head) && c == p->chunk_count - 1;
		layers += chunk->layers;
	}
	return layers;
}

/* Allocates host memory for tables of `layers` layers. The tables of all chunks are one block, which the first chunk's
 * pointer holds. */
static int allocate_tables(struct wlb_parameters *p, int layers, struct wlb_error *error)
{
	p->tensors = calloc((size_t)layers * LAYER_TENSORS + OTHER_TENSORS, sizeof(*p->tensors));
	p->chunks[0].tensors = calloc((size_t)layers, sizeof(*p->chunks[0].tensors));
	if (p->tensors == NULL || p->chunks[0].tensors == NULL)
		return wlb_fail(error, "out of memory for the table of parameters");
	for (int c = 1; c < p->chunk_count; c++)
		p->chunks[c].tensors = p->chunks[c - 1].tensors + p->chunks[c - 1].layers;
	return 0;
}

int wlb_parameters_list(struct wlb_parameters *p, const struct wlb_plan *plan, const struct wlb_coordinates *coords,
                        struct wlb_error *error)
{
	struct cut cut = cut_for(&p->shape, plan->layout.tp, coords->tp);
	p->chunk_count = plan->interleave;
	p->chunks = calloc((size_t)p->chunk_count, sizeof(*p->chunks));
	if (p->chunks == NULL)
		return wlb_fail(error, "out of memory for the table of parameters");
	if (allocate_tables(p, make_chunks(p, plan, coords->pp), error) < 0)
		return -1;
	p->heads = (int)(cut.q.count / p->shape.head_dim);
	p->kv_heads = (int)(cut.kv.count / p->shape.head_dim);
	p->intermediate = cut.intermediate.count;
	p->vocab_start = cut.vocab.start;
	p->vocab = cut.vocab.count;
	make_table(p, &cut, coords->pp == plan->layout.pp - 1);
	return 0;
}
