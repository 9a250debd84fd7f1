#include "worker/model/parameters.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "worker/model/philox.h"

enum {
	LAYER_TENSORS = sizeof(struct wlb_layer_tensors) / sizeof(int),
	ALIGN_ELEMENTS = 16, /* every tensor begins at a multiple of 64 bytes */
};

/* Adds a tensor to the table; its index. cols 1 makes it a vector. */
__attribute__((format(printf, 5, 6))) static int add(struct wlb_parameters *p, enum wlb_init init, int64_t rows,
                                                     int64_t cols, const char *name, ...)
{
	struct wlb_tensor *tensor = &p->tensors[p->count];
	*tensor = (struct wlb_tensor){
		.rows = rows, .cols = cols, .dimensions = init == WLB_INIT_ONES ? 1 : 2, .init = init};
	va_list args;
	va_start(args, name);
	vsnprintf(tensor->name, sizeof(tensor->name), name, args);
	va_end(args);
	return p->count++;
}

static void add_layer(struct wlb_parameters *p, int l)
{
	const struct wlb_model *m = &p->shape;
	int64_t h = m->hidden_size, f = m->intermediate_size;
	int64_t q = m->num_attention_heads * m->head_dim, kv = m->num_key_value_heads * m->head_dim;
	p->layers[l] = (struct wlb_layer_tensors){
		.input_norm = add(p, WLB_INIT_ONES, h, 1, "model.layers.%d.input_layernorm.weight", l),
		.q = add(p, WLB_INIT_NORMAL, q, h, "model.layers.%d.self_attn.q_proj.weight", l),
		.k = add(p, WLB_INIT_NORMAL, kv, h, "model.layers.%d.self_attn.k_proj.weight", l),
		.v = add(p, WLB_INIT_NORMAL, kv, h, "model.layers.%d.self_attn.v_proj.weight", l),
		.o = add(p, WLB_INIT_OUTPUT, h, q, "model.layers.%d.self_attn.o_proj.weight", l),
		.post_norm = add(p, WLB_INIT_ONES, h, 1, "model.layers.%d.post_attention_layernorm.weight", l),
		.gate = add(p, WLB_INIT_NORMAL, f, h, "model.layers.%d.mlp.gate_proj.weight", l),
		.up = add(p, WLB_INIT_NORMAL, f, h, "model.layers.%d.mlp.up_proj.weight", l),
		.down = add(p, WLB_INIT_OUTPUT, h, f, "model.layers.%d.mlp.down_proj.weight", l),
	};
}

/* Gives the tensors of one kind their places, from `offset` on; where the next may begin. */
static size_t place(struct wlb_parameters *p, int dimensions, size_t offset)
{
	for (int i = 0; i < p->count; i++) {
		struct wlb_tensor *tensor = &p->tensors[i];
		if (tensor->dimensions != dimensions)
			continue;
		tensor->offset = offset;
		size_t elements = (size_t)(tensor->rows * tensor->cols);
		offset += (elements + ALIGN_ELEMENTS - 1) / ALIGN_ELEMENTS * ALIGN_ELEMENTS;
	}
	return offset;
}

static void make_table(struct wlb_parameters *p)
{
	const struct wlb_model *m = &p->shape;
	p->embedding = add(p, WLB_INIT_NORMAL, m->vocab_size, m->hidden_size, "model.embed_tokens.weight");
	for (int l = 0; l < m->num_hidden_layers; l++)
		add_layer(p, l);
	p->final_norm = add(p, WLB_INIT_ONES, m->hidden_size, 1, "model.norm.weight");
	p->head = m->tie_word_embeddings ? p->embedding
	                                 : add(p, WLB_INIT_NORMAL, m->vocab_size, m->hidden_size, "lm_head.weight");
	p->matrices_elements = place(p, 2, 0);
	p->elements = place(p, 1, p->matrices_elements);
}

struct wlb_parameters *wlb_parameters_new(const struct wlb_model *shape, struct wlb_device *device,
                                          struct wlb_error *error)
{
	size_t layers = (size_t)shape->num_hidden_layers;
	struct wlb_parameters *p = calloc(1, sizeof(*p));
	if (p == NULL)
		goto no_memory;
	p->shape = *shape;
	p->device = device;
	p->tensors = calloc(layers * LAYER_TENSORS + 3, sizeof(*p->tensors));
	p->layers = calloc(layers, sizeof(*p->layers));
	if (p->tensors == NULL || p->layers == NULL)
		goto no_memory;
	make_table(p);
	size_t bytes = p->elements * wlb_dtype_bytes(device->dtype);
	p->weights = device->ops->alloc(device, bytes, error);
	p->gradients = p->weights != NULL ? device->ops->alloc(device, bytes, error) : NULL;
	if (p->gradients != NULL)
		return p;
	wlb_fail_in(error, "weights and gradients of %lld parameters", (long long)wlb_model_parameters(shape));
	wlb_parameters_free(p);
	return NULL;
no_memory:
	wlb_fail(error, "out of memory for the table of parameters");
	wlb_parameters_free(p);
	return NULL;
}

void wlb_parameters_free(struct wlb_parameters *p)
{
	if (p == NULL)
		return;
	p->device->ops->release(p->device, p->weights);
	p->device->ops->release(p->device, p->gradients);
	free(p->tensors);
	free(p->layers);
	free(p);
}

static void *at(const struct wlb_parameters *p, void *buffer, int tensor)
{
	return (char *)buffer + p->tensors[tensor].offset * wlb_dtype_bytes(p->device->dtype);
}

void *wlb_weight(const struct wlb_parameters *p, int tensor)
{
	return at(p, p->weights, tensor);
}

void *wlb_gradient(const struct wlb_parameters *p, int tensor)
{
	return at(p, p->gradients, tensor);
}

/* FNV-1a, 64 bit: the number of a tensor's stream of random numbers. */
static uint64_t stream_of(const char *name)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	for (; *name != '\0'; name++)
		hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
	return hash;
}

static void fill(const struct wlb_tensor *tensor, enum wlb_dtype dtype, uint64_t seed, double std, void *out_host)
{
	uint64_t stream = stream_of(tensor->name);
	for (int64_t i = 0; i < tensor->rows * tensor->cols; i++) {
		double value = tensor->init == WLB_INIT_ONES ? 1.0 : std * wlb_philox_normal(seed, stream, (uint64_t)i);
		if (dtype == WLB_FLOAT64)
			((double *)out_host)[i] = value;
		else
			((float *)out_host)[i] = (float)value;
	}
}

int wlb_parameters_init(struct wlb_parameters *p, uint64_t seed, double init_std, struct wlb_error *error)
{
	enum wlb_dtype dtype = p->device->dtype;
	double output_std = init_std / sqrt(2.0 * (double)p->shape.num_hidden_layers);
	for (int i = 0; i < p->count; i++) {
		const struct wlb_tensor *tensor = &p->tensors[i];
		size_t bytes = (size_t)(tensor->rows * tensor->cols) * wlb_dtype_bytes(dtype);
		void *host = malloc(bytes);
		if (host == NULL)
			return wlb_fail(error, "out of memory: %zu bytes to fill %s", bytes, tensor->name);
		fill(tensor, dtype, seed, tensor->init == WLB_INIT_OUTPUT ? output_std : init_std, host);
		p->device->ops->to_device(p->device, wlb_weight(p, i), host, bytes);
		free(host);
	}
	return p->device->ops->synchronize(p->device, error);
}
