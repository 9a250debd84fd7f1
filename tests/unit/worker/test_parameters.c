/* The ranks of a layout together hold every element once, in buckets, with the whole model's values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "worker/model/parameters.h"

/* What cannot be allocated is an error here, not the end of the test. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

enum { SEED = 3, MOST_RANKS = 64 };

struct layout_case {
	struct wlb_plan plan;
	int64_t layers;
	int64_t kv_heads;
	int tied;
	enum wlb_family family;
};

/* tp, cp, pp, dp, interleave, layers, KV heads, tied; ENDS: embedding and head count as layers, so that a stage may
 * have one of them alone. The vocabulary and the intermediate size divide by none. */
#define ANY_CASE(a, b, c, d, v, l, k, t, ends, shared, family)                                                         \
	{                                                                                                              \
		{{a, b, c, d}, v, 8, 1, WLB_RECOMPUTE_SELECTIVE, 0, ends, ends, shared, 0, 1}, l, k, t,                \
			WLB_FAMILY_##family                                                                            \
	}
#define CASE(...) ANY_CASE(__VA_ARGS__, 0, 0, LLAMA)
#define ENDS(...) ANY_CASE(__VA_ARGS__, 1, 0, LLAMA)
#define SHARED(...) ANY_CASE(__VA_ARGS__, 0, 1, LLAMA)
#define FAMILY(family, ...) ANY_CASE(__VA_ARGS__, 0, 0, family)

static const struct layout_case cases[] = {
	CASE(1, 1, 1, 1, 1, 2, 4, 0),           CASE(1, 1, 1, 1, 1, 2, 4, 1),
	CASE(2, 1, 1, 1, 1, 2, 2, 1),           CASE(4, 1, 1, 1, 1, 1, 4, 0),
	CASE(4, 1, 1, 3, 1, 2, 2, 0),           CASE(8, 2, 1, 1, 1, 1, 2, 1),
	CASE(4, 1, 2, 1, 1, 3, 1, 1),           CASE(1, 1, 4, 2, 1, 7, 8, 0),
	CASE(2, 2, 2, 2, 2, 7, 1, 1),           CASE(1, 3, 3, 1, 3, 9, 2, 0),
	CASE(2, 1, 2, 1, 3, 8, 4, 1),           CASE(1, 1, 2, 5, 1, 2, 8, 1),
	SHARED(1, 1, 2, 1, 1, 2, 4, 1),         SHARED(2, 1, 4, 2, 1, 5, 8, 0),
	SHARED(2, 2, 2, 2, 2, 7, 1, 1),         SHARED(1, 3, 3, 1, 3, 9, 2, 0),
	ENDS(4, 1, 4, 1, 1, 5, 2, 0),           ENDS(1, 1, 4, 1, 1, 2, 8, 0),
	ENDS(4, 1, 2, 1, 2, 2, 2, 1),           FAMILY(QWEN2, 4, 1, 2, 1, 1, 3, 2, 0),
	FAMILY(QWEN2, 2, 2, 1, 1, 1, 2, 4, 1),  FAMILY(QWEN3, 4, 1, 1, 2, 1, 2, 2, 1),
	FAMILY(OLMO2, 4, 1, 2, 2, 2, 5, 1, 0),  FAMILY(OLMO2, 2, 1, 2, 1, 1, 2, 8, 1),
	FAMILY(GEMMA2, 4, 1, 2, 1, 1, 3, 2, 1), FAMILY(GEMMA3, 2, 2, 1, 1, 1, 2, 1, 1),
};

static struct wlb_model shape_of(const struct layout_case *c)
{
	return (struct wlb_model){
		.hidden_size = 10,
		.intermediate_size = 13,
		.num_hidden_layers = c->layers,
		.num_attention_heads = 8,
		.num_key_value_heads = c->kv_heads,
		.head_dim = 2,
		.vocab_size = 23,
		.max_position_embeddings = 8,
		.rope_theta = 1e4,
		.rms_norm_eps = 1e-5,
		.tie_word_embeddings = c->tied,
		.family = c->family,
	};
}

/* The ranks of one replica: those of a data group hold the same. */
struct replica {
	struct wlb_device *device;
	const struct layout_case *layout_case;
	struct wlb_model shape;
	struct wlb_parameters *whole;
	struct wlb_parameters *of[MOST_RANKS]; /* [pp x tp] */
	struct wlb_coordinates coords[MOST_RANKS];
	int ranks;
};

static struct replica replica_open(const struct layout_case *c)
{
	struct wlb_error error = {0};
	struct replica r = {
		.device = wlb_device_open_cpu(WLB_FLOAT64, 1, &error), .layout_case = c, .shape = shape_of(c)};
	struct wlb_plan alone = {.layout = {1, 1, 1, 1}, .interleave = 1, .micro_batches = 1};
	assert_non_null(r.device);
	r.whole = wlb_parameters_new(&r.shape, &alone, &(struct wlb_coordinates){0}, r.device, &error);
	assert_non_null(r.whole);
	assert_int_equal(wlb_parameters_init(r.whole, SEED, 0.5, NULL, NULL, &error), 0);
	for (int pp = 0; pp < c->plan.layout.pp; pp++)
		for (int tp = 0; tp < c->plan.layout.tp; tp++) {
			r.coords[r.ranks] = (struct wlb_coordinates){.tp = tp, .pp = pp};
			struct wlb_parameters *p =
				wlb_parameters_new(&r.shape, &c->plan, &r.coords[r.ranks], r.device, &error);
			assert_non_null(p);
			assert_int_equal(wlb_parameters_init(p, SEED, 0.5, NULL, NULL, &error), 0);
			r.of[r.ranks++] = p;
		}
	return r;
}

static void replica_close(struct replica *r)
{
	for (int i = 0; i < r->ranks; i++)
		wlb_parameters_free(r->of[i]);
	wlb_parameters_free(r->whole);
	wlb_device_close(r->device);
}

static void for_each_case(void (*check)(const struct replica *))
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct replica r = replica_open(&cases[i]);
		check(&r);
		replica_close(&r);
	}
}

static int find(const struct wlb_parameters *p, const char *name)
{
	for (int i = 0; i < p->count; i++)
		if (strcmp(p->tensors[i].name, name) == 0)
			return i;
	fail_msg("no tensor %s", name);
	return -1;
}

/* Adds to times[] one for each element that this block represents; its values must be the whole tensor's. */
static void mark(const struct replica *r, const struct wlb_parameters *p, int tensor, int *times)
{
	const struct wlb_tensor *t = &p->tensors[tensor];
	int whole = find(r->whole, t->name);
	const double *values = wlb_weight(p, tensor), *expected = wlb_weight(r->whole, whole);
	assert_int_equal(t->block.global_rows, r->whole->tensors[whole].block.rows);
	assert_int_equal(t->block.global_cols, r->whole->tensors[whole].block.cols);
	assert_int_equal(t->block.dimensions, r->whole->tensors[whole].block.dimensions);
	for (int64_t row = 0; row < t->block.rows; row++)
		for (int64_t col = 0; col < t->block.cols; col++) {
			size_t at =
				(size_t)((t->block.row_start + row) * t->block.global_cols + t->block.col_start + col);
			assert_true(values[row * t->block.cols + col] == expected[at]);
			times[r->whole->tensors[whole].offset + at] += t->owned;
		}
}

static void check_cover(const struct replica *r)
{
	int *times = calloc(r->whole->elements, sizeof(*times));
	int64_t parameters = 0;
	assert_non_null(times);
	for (int rank = 0; rank < r->ranks; rank++)
		for (int i = 0; i < r->of[rank]->count; i++)
			mark(r, r->of[rank], i, times);
	for (int i = 0; i < r->whole->count; i++) {
		const struct wlb_tensor *t = &r->whole->tensors[i];
		for (int64_t at = 0; at < t->block.rows * t->block.cols; at++)
			if (times[t->offset + (size_t)at] != 1)
				fail_msg("%s: element %lld is owned %d times", t->name, (long long)at,
				         times[t->offset + (size_t)at]);
		parameters += t->block.rows * t->block.cols;
	}
	assert_int_equal(parameters, wlb_model_parameters(&r->shape));
	free(times);
}

static void every_element_has_one_owner_and_the_whole_models_value(void **state)
{
	for_each_case(check_cover);
	(void)state;
}

/* Buckets follow one another, and in each its tensors, without overlap; all else is padding, and 0. */
static void check_places(const struct replica *r)
{
	size_t shards = (size_t)r->layout_case->plan.layout.dp * (size_t)r->layout_case->plan.layout.cp;
	for (int rank = 0; rank < r->ranks; rank++) {
		const struct wlb_parameters *p = r->of[rank];
		char *used = calloc(p->elements, 1);
		size_t next = 0;
		assert_non_null(used);
		assert_int_equal(p->shards, shards);
		assert_true(p->bucket_count <= p->count); /* each has a tensor */
		for (int b = 0; b < p->bucket_count; b++) {
			assert_int_equal(p->buckets[b].offset, next);
			assert_int_equal(p->buckets[b].elements % (16 * shards), 0);
			next += p->buckets[b].elements;
		}
		assert_int_equal(p->elements, next);
		for (int i = 0; i < p->count; i++) {
			const struct wlb_tensor *t = &p->tensors[i];
			const struct wlb_bucket *bucket = &p->buckets[t->bucket];
			size_t elements = (size_t)(t->block.rows * t->block.cols);
			assert_true(t->offset >= bucket->offset);
			assert_true(t->offset + elements <= bucket->offset + bucket->elements);
			assert_int_equal(t->owned, bucket->owned);
			for (size_t at = 0; at < elements; at++)
				assert_int_equal(used[t->offset + at]++, 0);
		}
		for (size_t at = 0; at < p->elements; at++)
			assert_true(used[at] || ((const double *)p->weights)[at] == 0.0);
		free(used);
	}
}

static size_t end_of(const struct wlb_parameters *p, int tensor)
{
	return p->tensors[tensor].offset + (size_t)wlb_tensor_block_elements(&p->tensors[tensor].block);
}

/* What is multiplied as one matrix lies together; every such matrix begins at a multiple of 16. */
static void check_joined(const struct replica *r)
{
	for (int rank = 0; rank < r->ranks; rank++) {
		const struct wlb_parameters *p = r->of[rank];
		for (int c = 0; c < p->chunk_count; c++)
			for (int l = 0; l < p->chunks[c].layers; l++) {
				const struct wlb_layer_tensors *t = &p->chunks[c].tensors[l];
				int begins[] = {t->input_norm, t->q,        t->o,    t->attention_norm,
				                t->post_norm,  t->mlp_norm, t->gate, t->down};
				int apart = p->tensors[t->k].bucket != p->tensors[t->q].bucket;
				assert_int_equal(apart, p->shape.num_key_value_heads < r->layout_case->plan.layout.tp);
				assert_int_equal(p->tensors[t->k].offset % 16, apart ? 0 : end_of(p, t->q) % 16);
				assert_true(apart || p->tensors[t->k].offset == end_of(p, t->q));
				assert_int_equal(p->tensors[t->v].offset, end_of(p, t->k));
				assert_int_equal(p->tensors[t->up].offset, end_of(p, t->gate));
				for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
					assert_true(begins[i] < 0 || p->tensors[begins[i]].offset % 16 == 0);
			}
	}
}

static void tensors_have_places_of_their_own(void **state)
{
	for_each_case(check_places);
	for_each_case(check_joined);
	(void)state;
}

/* A number that falls as the backward pass goes on: large for the head of the last chunk, 0 for the embedding. */
static int64_t moment(int chunk, int layer)
{
	return (int64_t)chunk * 1000 + layer + 1;
}

static void complete_with(const struct wlb_parameters *p, int tensor, int chunk, int layer, int64_t *last_of_bucket)
{
	int64_t *last = &last_of_bucket[p->tensors[tensor].bucket];
	if (moment(chunk, layer) < *last)
		*last = moment(chunk, layer);
}

/* The moment at which the backward pass is done with the last tensor of each bucket. */
static void find_last_moments(const struct wlb_parameters *p, int64_t *last_of_bucket)
{
	for (int b = 0; b < p->bucket_count; b++)
		last_of_bucket[b] = INT64_MAX;
	for (int c = 0; c < p->chunk_count; c++)
		for (int l = 0; l < p->chunks[c].layers; l++) {
			const struct wlb_layer_tensors *tensors = &p->chunks[c].tensors[l];
			for (const int *tensor = &tensors->input_norm; tensor <= &tensors->down; tensor++)
				if (*tensor >= 0)
					complete_with(p, *tensor, c, l, last_of_bucket);
		}
	if (p->final_norm >= 0)
		complete_with(p, p->final_norm, p->chunk_count - 1, p->chunks[p->chunk_count - 1].layers,
		              last_of_bucket);
	if (p->head >= 0)
		complete_with(p, p->head, p->chunk_count - 1, p->chunks[p->chunk_count - 1].layers, last_of_bucket);
	if (p->embedding >= 0)
		complete_with(p, p->embedding, 0, -1, last_of_bucket);
}

static void check_order(const struct replica *r)
{
	for (int rank = 0; rank < r->ranks; rank++) {
		const struct wlb_parameters *p = r->of[rank];
		int64_t last_of_bucket[MOST_RANKS];
		assert_true(p->bucket_count <= MOST_RANKS);
		find_last_moments(p, last_of_bucket);
		for (int b = 0; b < p->bucket_count; b++) {
			int64_t complete = moment(p->buckets[b].chunk, p->buckets[b].layer);
			/* Norms, and keys that several ranks hold, wait for the first chunk even if it has no layer. */
			assert_true(p->chunks[0].layers > 0 ? complete == last_of_bucket[b]
			                                    : complete <= last_of_bucket[b]);
			assert_true(b == 0 || complete <= last_of_bucket[b - 1]);
		}
	}
}

static void buckets_come_as_the_backward_pass_completes_them(void **state)
{
	for_each_case(check_order);
	(void)state;
}

static enum wlb_bucket_kind expected_kind(const struct replica *r, const struct wlb_tensor *t)
{
	const struct wlb_layout *l = &r->layout_case->plan.layout;
	int is_vector = t->block.dimensions == 1, is_bias = strstr(t->name, ".bias") != NULL;
	int is_cut_norm = r->shape.family == WLB_FAMILY_OLMO2 && strstr(t->name, "self_attn") != NULL;
	int of_kv = strstr(t->name, ".k_proj.") != NULL || strstr(t->name, ".v_proj.") != NULL ||
	            strstr(t->name, ".k_norm.") != NULL;
	if (is_vector && !is_bias && !is_cut_norm)
		return WLB_BUCKET_NORMS;
	if (r->shape.num_key_value_heads < l->tp && of_kv)
		return is_vector ? WLB_BUCKET_KV_VECTORS : WLB_BUCKET_KV;
	if (is_vector)
		return WLB_BUCKET_VECTORS;
	if (r->shape.tie_word_embeddings && l->pp > 1 && strcmp(t->name, "model.embed_tokens.weight") == 0)
		return WLB_BUCKET_TIED;
	if (r->layout_case->plan.shared_head && strcmp(t->name, "lm_head.weight") == 0)
		return WLB_BUCKET_TIED;
	return WLB_BUCKET_MATRICES;
}

static int same_block(const struct wlb_tensor *a, const struct wlb_tensor *b)
{
	return strcmp(a->name, b->name) == 0 && a->block.row_start == b->block.row_start &&
	       a->block.rows == b->block.rows && a->block.col_start == b->block.col_start &&
	       a->block.cols == b->block.cols;
}

/* Ranks that hold the same block can sum its bucket: it has the same place in it on each. */
static void check_equal_buckets(const struct replica *r, const struct wlb_parameters *a, const struct wlb_parameters *b)
{
	for (int i = 0; i < a->count; i++)
		for (int j = 0; j < b->count; j++) {
			const struct wlb_tensor *s = &a->tensors[i], *t = &b->tensors[j];
			if (!same_block(s, t))
				continue;
			assert_int_not_equal(expected_kind(r, s), WLB_BUCKET_MATRICES);
			assert_int_not_equal(expected_kind(r, s), WLB_BUCKET_VECTORS);
			assert_int_equal(a->buckets[s->bucket].elements, b->buckets[t->bucket].elements);
			assert_int_equal(s->offset - a->buckets[s->bucket].offset,
			                 t->offset - b->buckets[t->bucket].offset);
		}
}

static void check_kinds(const struct replica *r)
{
	for (int rank = 0; rank < r->ranks; rank++) {
		const struct wlb_parameters *p = r->of[rank];
		for (int i = 0; i < p->count; i++)
			assert_int_equal(p->buckets[p->tensors[i].bucket].kind, expected_kind(r, &p->tensors[i]));
		for (int other = 0; other < rank; other++)
			check_equal_buckets(r, p, r->of[other]);
	}
}

static void what_several_ranks_hold_lies_alike_in_its_bucket(void **state)
{
	for_each_case(check_kinds);
	(void)state;
}

/* Each query head finds its key head on the same rank; what goes into a matrix is what the one before gives. */
static void check_widths(const struct replica *r)
{
	int64_t d = r->shape.head_dim, group = r->shape.num_attention_heads / r->shape.num_key_value_heads;
	for (int rank = 0; rank < r->ranks; rank++) {
		const struct wlb_parameters *p = r->of[rank];
		if (p->embedding >= 0) {
			assert_int_equal(p->tensors[p->embedding].block.row_start, p->vocab_start);
			assert_int_equal(p->tensors[p->embedding].block.rows, p->vocab);
		}
		if (p->chunks[0].layers == 0)
			continue;
		const struct wlb_layer_tensors *layer = &p->chunks[0].tensors[0];
		const struct wlb_tensor *q = &p->tensors[layer->q], *k = &p->tensors[layer->k];
		const struct wlb_tensor *v = &p->tensors[layer->v], *o = &p->tensors[layer->o];
		const struct wlb_tensor *gate = &p->tensors[layer->gate], *down = &p->tensors[layer->down];
		assert_true(q->block.rows == p->heads * d && k->block.rows == p->kv_heads * d &&
		            v->block.rows == k->block.rows);
		assert_true(v->block.row_start == k->block.row_start && p->heads % p->kv_heads == 0);
		for (int64_t head = 0; head < p->heads; head++)
			assert_int_equal((q->block.row_start / d + head) / group,
			                 k->block.row_start / d + head / (p->heads / p->kv_heads));
		assert_true(o->block.col_start == q->block.row_start && o->block.cols == q->block.rows);
		assert_true(gate->block.rows == p->intermediate && down->block.cols == p->intermediate);
		assert_true(down->block.col_start == gate->block.row_start);
	}
}

static void heads_and_widths_fit_together(void **state)
{
	for_each_case(check_widths);
	(void)state;
}

static void check_stages(const struct replica *r)
{
	const struct wlb_layout *l = &r->layout_case->plan.layout;
	for (int rank = 0; rank < r->ranks; rank++) {
		const struct wlb_parameters *p = r->of[rank];
		int first = r->coords[rank].pp == 0, last = r->coords[rank].pp == l->pp - 1;
		int has_head = last || r->layout_case->plan.shared_head;
		assert_int_equal(p->chunk_count, r->layout_case->plan.interleave);
		assert_int_equal(p->embedding >= 0, first);
		assert_int_equal(p->head >= 0, has_head);
		assert_int_equal(p->final_norm >= 0, last);
		assert_int_equal(p->head >= 0 && p->head == p->embedding,
		                 first && has_head && r->shape.tie_word_embeddings);
		for (int c = 0; c < p->chunk_count; c++) {
			const struct wlb_chunk *chunk = &p->chunks[c];
			char name[64];
			snprintf(name, sizeof(name), "model.layers.%d.self_attn.q_proj.weight", chunk->first_layer);
			if (chunk->layers > 0)
				assert_string_equal(p->tensors[chunk->tensors[0].q].name, name);
			assert_int_equal(chunk->has_embedding, first && c == 0);
			assert_int_equal(chunk->has_head, has_head && c == p->chunk_count - 1);
		}
	}
}

static void stages_hold_what_their_place_asks_for(void **state)
{
	for_each_case(check_stages);
	(void)state;
}

/* A layer of 8.6 million elements: two make a bucket. */
static void layers_share_a_bucket_up_to_a_size(void **state)
{
	struct wlb_model shape = {
		.hidden_size = 1024,
		.intermediate_size = 1434,
		.num_hidden_layers = 3,
		.num_attention_heads = 16,
		.num_key_value_heads = 16,
		.head_dim = 64,
		.vocab_size = 16,
	};
	struct wlb_error error = {0};
	struct wlb_plan plan = {.layout = {1, 1, 1, 1}, .interleave = 1, .micro_batches = 1};
	struct wlb_device *device = wlb_device_open_cpu(WLB_FLOAT32, 1, &error);
	assert_non_null(device);
	struct wlb_parameters *p = wlb_parameters_new(&shape, &plan, &(struct wlb_coordinates){0}, device, &error);
	assert_non_null(p);
	static const int layers[] = {3, 1, 0, 0, -1}; /* head, two of layers, norms, embedding */
	assert_int_equal(p->bucket_count, sizeof(layers) / sizeof(layers[0]));
	for (int b = 0; b < p->bucket_count; b++)
		assert_int_equal(p->buckets[b].layer, layers[b]);
	wlb_parameters_free(p);
	wlb_device_close(device);
	(void)state;
}

static void a_model_beyond_memory_is_refused_with_its_size(void **state)
{
	struct wlb_model shape = {
		.hidden_size = 1 << 24,
		.intermediate_size = 16,
		.num_hidden_layers = 1,
		.num_attention_heads = 1,
		.num_key_value_heads = 1,
		.head_dim = 16,
		.vocab_size = 1 << 24,
		.tie_word_embeddings = 1,
	};
	struct wlb_error error = {0};
	struct wlb_plan plan = {.layout = {1, 1, 1, 1}, .interleave = 1, .micro_batches = 1};
	struct wlb_device *device = wlb_device_open_cpu(WLB_FLOAT32, 1, &error);
	assert_non_null(device);
	assert_null(wlb_parameters_new(&shape, &plan, &(struct wlb_coordinates){0}, device, &error));
	/* 2^48 of the embedding, 7 x 16 x 2^24 of the matrices, 3 x 2^24 of the norms */
	assert_non_null(strstr(error.message, "weights of this rank's 281476906090496 parameters: "));
	assert_non_null(strstr(error.message, "cannot allocate 1125907.624 GB"));
	wlb_device_close(device);
	(void)state;
}

/* ---- ZeRO stage 2 ---- */

static size_t last_asked_bytes;

/* Of models that the host could not hold only the places are checked. */
static void *pretend_alloc(struct wlb_device *device, size_t bytes, struct wlb_error *error)
{
	(void)device, (void)error;
	last_asked_bytes = bytes;
	return malloc(1);
}

static void pretend_release(struct wlb_device *device, void *memory)
{
	(void)device;
	free(memory);
}

struct staged_case {
	struct wlb_layout layout;
	int64_t hidden, mlp, layers, kv_heads, vocab;
	int tied;
	double most_share; /* of the bytes of all gradients */
};

/* Llama 3 of 8B and 70B, 8B with keys that two ranks have, Llama 3.2 of 1B; layers of which a bucket has two, with one
 * over; of which it has all; and two layers. */
static const struct staged_case staged_cases[] = {
	{{1, 1, 1, 8}, 4096, 14336, 32, 8, 128256, 0, 0.1},  {{8, 2, 1, 4}, 8192, 28672, 80, 8, 128256, 0, 0.03},
	{{16, 1, 1, 2}, 4096, 14336, 32, 8, 128256, 0, 0.2}, {{1, 1, 1, 64}, 2048, 8192, 16, 8, 128256, 1, 0.4},
	{{1, 2, 1, 1}, 1024, 2048, 7, 8, 32000, 0, 0.6},     {{1, 1, 1, 2}, 128, 352, 6, 4, 4096, 0, 0.8},
	{{2, 1, 1, 3}, 4096, 14336, 2, 8, 50000, 1, 1.0},    {{1, 1, 1, 2}, 128, 352, 6, 4, 4096, 1, 1.0},
};

static int is_apart(const struct wlb_bucket *a, const struct wlb_bucket *b)
{
	return a->gradient_offset + a->elements <= b->gradient_offset ||
	       b->gradient_offset + b->elements <= a->gradient_offset;
}

/* A bucket is apart from all that are kept, and from the one that is reduced while its gradients are computed. */
static void check_gradient_places(const struct wlb_parameters *p)
{
	const struct wlb_bucket *before = NULL;
	for (int b = 0; b < p->bucket_count; b++) {
		const struct wlb_bucket *bucket = &p->buckets[b];
		assert_true(bucket->gradient_offset % 16 == 0);
		assert_true(bucket->gradient_offset + bucket->elements <= p->gradient_elements);
		for (int other = 0; other < b; other++)
			assert_true((bucket->is_passing && p->buckets[other].is_passing) ||
			            is_apart(bucket, &p->buckets[other]));
		assert_true(!bucket->is_passing || before == NULL || is_apart(bucket, before));
		before = bucket->is_passing ? bucket : before;
	}
	for (int i = 0; i < p->count; i++) {
		const struct wlb_bucket *bucket = &p->buckets[p->tensors[i].bucket];
		size_t end = end_of(p, i) + p->tensors[i].padding, next = bucket->offset + bucket->elements;
		for (int other = 0; other < p->count; other++)
			if (p->tensors[other].offset >= end_of(p, i) && other != i && p->tensors[other].offset < next)
				next = p->tensors[other].offset;
		assert_int_equal(end, next);
	}
}

static void check_staged(const struct staged_case *c, struct wlb_device *device)
{
	const struct wlb_machine machine = {.element_bytes = 4};
	const struct wlb_plan plan = {.layout = c->layout, .interleave = 1, .micro_batches = 1, .zero_stage = 2};
	const struct wlb_model shape = {
		.hidden_size = c->hidden,
		.intermediate_size = c->mlp,
		.num_hidden_layers = c->layers,
		.num_attention_heads = 32,
		.num_key_value_heads = c->kv_heads,
		.head_dim = c->hidden / 32,
		.vocab_size = c->vocab,
		.max_position_embeddings = 8192,
		.rope_theta = 1e4,
		.rms_norm_eps = 1e-5,
		.tie_word_embeddings = c->tied,
	};
	struct wlb_cost_options options;
	struct wlb_error error = {0};
	wlb_cost_options_worker(&options, &machine);
	assert_int_equal(wlb_plan_check(&plan, &shape, &error), 0);
	struct wlb_parameters *p = wlb_parameters_new(&shape, &plan, &(struct wlb_coordinates){0}, device, &error);
	assert_non_null(p);
	check_gradient_places(p);
	double predicted = wlb_memory_stage_of(&plan, &shape, &machine, &options, 0, 4096, 4096).gradients;
	double measured = (double)last_asked_bytes, all = 4.0 * (double)p->elements;
	if (measured / predicted < 0.995 || measured / predicted > 1.005 || measured > c->most_share * all)
		fail_msg("%lld layers of %lld: %.0f bytes of gradients, %.0f predicted, %.0f of all",
		         (long long)c->layers, (long long)c->hidden, measured, predicted, all);
	wlb_parameters_free(p);
}

static void gradients_pass_through_the_memory_of_two_neighbours(void **state)
{
	struct wlb_error error = {0};
	struct wlb_device *device = wlb_device_open_cpu(WLB_FLOAT32, 1, &error);
	assert_non_null(device);
	const struct wlb_ops *own = device->ops;
	struct wlb_ops ops = *own;
	ops.alloc = pretend_alloc;
	ops.release = pretend_release;
	device->ops = &ops;
	for (size_t i = 0; i < sizeof(staged_cases) / sizeof(staged_cases[0]); i++)
		check_staged(&staged_cases[i], device);
	device->ops = own;
	wlb_device_close(device);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_element_has_one_owner_and_the_whole_models_value),
		cmocka_unit_test(tensors_have_places_of_their_own),
		cmocka_unit_test(buckets_come_as_the_backward_pass_completes_them),
		cmocka_unit_test(gradients_pass_through_the_memory_of_two_neighbours),
		cmocka_unit_test(what_several_ranks_hold_lies_alike_in_its_bucket),
		cmocka_unit_test(heads_and_widths_fit_together),
		cmocka_unit_test(stages_hold_what_their_place_asks_for),
		cmocka_unit_test(layers_share_a_bucket_up_to_a_size),
		cmocka_unit_test(a_model_beyond_memory_is_refused_with_its_size),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
