/* A pass of each family in bfloat16 on the CUDA device, against the same in float64 on the CPU device, which computes
 * what Transformers does (tests/unit/worker/test_pytorch_reference.c): the loss, and the gradient of every tensor. The
 * bound is that of rounded.h; that it is narrow enough is shown by a device with one fault. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/attention_tiles.h"
#include "kernels/bfloat16.h"
#include "tests/cuda_host/rounded.h"
#include "tests/unit/worker/tiny_batch.h"
#include "worker/model/gradients.h"
#include "worker/model/transformer.h"

enum { VOCAB = 67, TOKENS = 46, DOCUMENTS = 4, PASSES = 16 };

/* Errors over the root mean square that the passes show. The loss is one number, whose error is the sum of very many
 * small ones and thus nearly normal: more than four standard deviations occur once in 16,000 losses. That of a tensor
 * is the norm over its elements: twice the root mean square is four times the mean of a sum of squares of many. */
static const double MOST_OF_LOSS = 4, MOST_OF_TENSOR = 2;

/* Of each family, and of scaled angles, what differs. `epsilon` of norms is so large that a wrong one shows. */
static const struct variant {
	const char *name;
	struct wlb_model model;
} VARIANTS[] = {
	{"llama", {.family = WLB_FAMILY_LLAMA}},
	{"yarn",
         {.family = WLB_FAMILY_LLAMA,
          .rope_scaling = {.type = WLB_ROPE_YARN,
                           .truncate = 1,
                           .factor = 4,
                           .original_max_position_embeddings = 16,
                           .beta_fast = 32,
                           .beta_slow = 1,
                           .attention_factor = 1.14}}},
	{"mistral", {.family = WLB_FAMILY_MISTRAL, .sliding_window = 5}},
	{"qwen2", {.family = WLB_FAMILY_QWEN2}},
	{"qwen3", {.family = WLB_FAMILY_QWEN3}},
	{"olmo2", {.family = WLB_FAMILY_OLMO2}},
	{"phi3", {.family = WLB_FAMILY_PHI3, .rotary_dim = 48}},
	{"smollm3", {.family = WLB_FAMILY_SMOLLM3, .no_rope_layer_interval = 2}},
	{"gemma2",
         {.family = WLB_FAMILY_GEMMA2,
          .sliding_window = 5,
          .full_layers = {2},
          .query_pre_attn_scalar = 48,
          .attn_logit_softcapping = 2,
          .final_logit_softcapping = 4}},
	{"gemma3",
         {.family = WLB_FAMILY_GEMMA3,
          .sliding_window = 5,
          .full_layers = {2},
          .query_pre_attn_scalar = 48,
          .rope_local_base_freq = 40}},
};
enum { VARIANT_COUNT = sizeof(VARIANTS) / sizeof(VARIANTS[0]) };

static struct wlb_model model_of(const struct variant *variant)
{
	struct wlb_model m = variant->model;
	m.hidden_size = 128;
	m.intermediate_size = 96;
	m.num_hidden_layers = 2;
	m.num_attention_heads = 2;
	m.num_key_value_heads = 1;
	m.head_dim = 64;
	m.vocab_size = VOCAB;
	m.max_position_embeddings = 64;
	m.rope_theta = 300;
	m.rms_norm_eps = 0.1;
	return m;
}

/* -- a model on a device -- */

struct instance {
	struct wlb_device *device;
	struct wlb_comm *world;
	struct wlb_groups *groups;
	struct wlb_parameters *parameters;
	struct wlb_transformer *transformer;
	struct tiny_batch batch;
	void *tiles[3]; /* device memory */
	double *loss_sum;
};

static struct wlb_error error;

static void *upload(struct wlb_device *device, const void *from_host, size_t bytes)
{
	void *to = device->ops->alloc(device, bytes > 0 ? bytes : 1, &error);
	assert_non_null(to);
	device->ops->to_device(device, NULL, to, from_host, bytes);
	assert_int_equal(device->ops->synchronize(device, &error), 0);
	return to;
}

static void add_tiles(struct instance *o, int rows)
{
	struct wlb_attention_tiles tiles = {0};
	struct wlb_segments *s = &o->batch.batch.segments;
	struct wlb_segment on_host[DOCUMENTS];
	if (rows == 0)
		return;
	o->device->ops->to_host(o->device, on_host, s->segments, (size_t)s->count * sizeof(*on_host));
	assert_int_equal(wlb_attention_tiles_make(&tiles, on_host, s->count, rows, &error), 0);
	o->tiles[0] = upload(o->device, tiles.queries, (size_t)tiles.query_tiles * sizeof(*tiles.queries));
	o->tiles[1] = upload(o->device, tiles.keys, (size_t)tiles.key_tiles * sizeof(*tiles.keys));
	o->tiles[2] = upload(o->device, tiles.readers, (size_t)tiles.reader_count * sizeof(*tiles.readers));
	s->tile_rows = rows;
	s->query_tile_count = tiles.query_tiles;
	s->key_tile_count = tiles.key_tiles;
	s->query_tiles = o->tiles[0];
	s->key_tiles = o->tiles[1];
	s->readers = o->tiles[2];
	wlb_attention_tiles_free(&tiles);
}

static void make_batch(struct instance *o)
{
	static const int lengths[DOCUMENTS] = {24, 1, 16, 5};
	struct tiny_document documents[DOCUMENTS];
	for (int d = 0; d < DOCUMENTS; d++) {
		documents[d].length = lengths[d];
		for (int i = 0; i <= lengths[d]; i++)
			documents[d].tokens[i] = (11 * i * i + 5 * i + 17 * d) % VOCAB;
	}
	o->batch = tiny_batch_new(o->device, documents, DOCUMENTS, WLB_SHARDING_SEQUENCE, 1, 1, 0);
	add_tiles(o, o->device->ops->attention_tile_rows(o->device, 64, &error));
}

/* Every value is a bfloat16, so that both devices have the same. Residual stream, queries, gates and logits are around
 * 1, and biases and norms have a say. */
static void set_weights(const struct wlb_parameters *p)
{
	uint32_t state = 1;
	for (int i = 0; i < p->count; i++) {
		const struct wlb_tensor *t = &p->tensors[i];
		const int is_norm = strstr(t->name, "norm") != NULL, is_vector = t->block.dimensions == 1;
		const double width = is_vector ? 0.6 : strstr(t->name, "embed") != NULL ? 0.9 : 0.1;
		const int64_t count = wlb_tensor_block_elements(&t->block);
		void *values = malloc((size_t)count * sizeof(double));
		assert_non_null(values);
		for (int64_t e = 0; e < count; e++) {
			state = state * 1664525U + 1013904223U;
			const double value = is_norm + width * ((double)(state >> 8) / (1 << 23) - 1);
			wlb_dtype_store(p->device->master, values, e,
			                wlb_float_of_bfloat16(wlb_bfloat16_of_double(value)));
		}
		assert_int_equal(wlb_weight_set(p, i, values, &error), 0);
		free(values);
	}
}

static struct instance open_instance(const struct variant *variant, struct wlb_device *device)
{
	const struct wlb_plan plan = {.layout = {1, 1, 1, 1}, .interleave = 1, .micro_batches = 1, .zero_stage = 1};
	const struct wlb_model model = model_of(variant);
	struct instance o = {.device = device};
	assert_non_null(device);
	assert_non_null(o.world = wlb_comm_open_world(device, 0, 1, &error));
	assert_non_null(o.groups = wlb_groups_open(o.world, &plan, 0, &model, &error));
	assert_non_null(o.parameters = wlb_parameters_new(&model, &plan, &o.groups->coords, device, &error));
	o.transformer = wlb_transformer_new(o.parameters, o.groups, &plan, 1, 1, TOKENS, TOKENS, &error);
	assert_non_null(o.transformer);
	assert_non_null(o.loss_sum = device->ops->alloc(device, sizeof(double), &error));
	make_batch(&o);
	set_weights(o.parameters);
	return o;
}

static void close_instance(struct instance *o)
{
	for (int i = 0; i < 3; i++)
		o->device->ops->release(o->device, o->tiles[i]);
	o->device->ops->release(o->device, o->loss_sum);
	tiny_batch_free(&o->batch);
	wlb_transformer_free(o->transformer);
	wlb_parameters_free(o->parameters);
	wlb_groups_close(o->groups);
	wlb_comm_close(o->world);
	wlb_device_close(o->device);
}

/* -- the results of a pass: the gradients of each tensor in turn, then the loss -- */

static int64_t result_count(const struct wlb_parameters *p, int result)
{
	return result == p->count ? 1 : wlb_tensor_block_elements(&p->tensors[result].block);
}

static int64_t count_all(const struct wlb_parameters *p)
{
	int64_t count = 0;
	for (int result = 0; result <= p->count; result++)
		count += result_count(p, result);
	return count;
}

/* Returns the values of all results, which the caller frees. */
static double *run_pass(struct instance *o)
{
	const struct wlb_parameters *p = o->parameters;
	const struct wlb_ops *ops = o->device->ops;
	struct wlb_slot *slot = wlb_transformer_slot(o->transformer, 0);
	double *values = malloc((size_t)count_all(p) * sizeof(double)), *next = values;
	assert_non_null(values);
	ops->zero(o->device, o->loss_sum, sizeof(double));
	wlb_gradients_begin(p);
	assert_int_equal(wlb_forward(o->transformer, 0, slot, &o->batch.batch, &error), 0);
	assert_int_equal(
		wlb_head_loss(o->transformer, 0, slot, &o->batch.batch, o->loss_sum, 1.0 / TOKENS, NULL, &error), 0);
	assert_int_equal(wlb_backward(o->transformer, 0, slot, &o->batch.batch, NULL, &error), 0);
	for (int i = 0; i < p->count; i++) {
		const int64_t count = result_count(p, i);
		const size_t bytes = (size_t)count * wlb_dtype_bytes(o->device->gradients);
		void *host = malloc(bytes);
		assert_non_null(host);
		ops->to_host(o->device, host, wlb_gradient(p, i), bytes);
		assert_int_equal(ops->synchronize(o->device, &error), 0);
		for (int64_t e = 0; e < count; e++)
			*next++ = wlb_dtype_load(o->device->gradients, host, e);
		free(host);
	}
	ops->to_host(o->device, next, o->loss_sum, sizeof(double));
	assert_int_equal(ops->synchronize(o->device, &error), 0);
	return values;
}

static double squared_distance(const double *a, const double *b, int64_t count)
{
	double sum = 0;
	for (int64_t i = 0; i < count; i++)
		sum += (a[i] - b[i]) * (a[i] - b[i]);
	return isnan(sum) ? INFINITY : sum;
}

/* -- the comparison -- */

/* Adds the squared errors of passes with random roundings: squares[result], over all passes. */
static void measure_roundings(struct instance *cpu, const double *want, double *squares)
{
	const struct wlb_parameters *p = cpu->parameters;
	for (int pass = 0; pass < PASSES; pass++) {
		rounded_begin(cpu->device, (uint64_t)pass + 1);
		double *found = run_pass(cpu);
		rounded_end(cpu->device);
		for (int64_t result = 0, at = 0; result <= p->count; at += result_count(p, (int)result), result++)
			squares[result] += squared_distance(found + at, want + at, result_count(p, (int)result));
		free(found);
	}
}

/* Returns the greatest error of a result over its bound; errors of a tensor are norms. */
static double compare(const struct variant *variant, struct wlb_device *cuda_device)
{
	struct instance cpu = open_instance(variant, wlb_device_open_cpu(WLB_FLOAT64, 1, &error));
	struct instance cuda = open_instance(variant, cuda_device);
	const struct wlb_parameters *p = cpu.parameters;
	double *want = run_pass(&cpu), *got = run_pass(&cuda), greatest = 0;
	double *squares = calloc((size_t)p->count + 1, sizeof(double));
	int worst = 0;
	assert_non_null(squares);
	measure_roundings(&cpu, want, squares);
	for (int64_t result = 0, at = 0; result <= p->count; at += result_count(p, (int)result), result++) {
		const double off = sqrt(squared_distance(got + at, want + at, result_count(p, (int)result)));
		const double most = result == p->count ? MOST_OF_LOSS : MOST_OF_TENSOR;
		const double ratio = off / (most * sqrt(squares[result] / PASSES));
		if (ratio > greatest) {
			greatest = ratio;
			worst = (int)result;
		}
	}
	printf("%-8s %.2f of the bound: %s\n", variant->name, greatest,
	       worst == p->count ? "loss" : p->tensors[worst].name);
	free(want);
	free(got);
	free(squares);
	close_instance(&cpu);
	close_instance(&cuda);
	return greatest;
}

static struct wlb_device *open_cuda(void)
{
	return wlb_device_open_cuda(0, WLB_BFLOAT16, WLB_FLOAT32, &error);
}

static void every_family(void **state)
{
	(void)state;
	for (int i = 0; i < VARIANT_COUNT; i++)
		assert_true(compare(&VARIANTS[i], open_cuda()) <= 1);
}

/* -- faults -- */

static const struct wlb_ops *right;

static void no_bias(struct wlb_device *d, void *y, int64_t stride, const void *bias, int64_t n, int64_t width)
{
	(void)d, (void)y, (void)stride, (void)bias, (void)n, (void)width;
}

static void bias_gradient_of_other_rows(struct wlb_device *d, void *d_bias, const void *d_y, int64_t stride, int64_t n,
                                        int64_t width)
{
	right->bias_backward(d, d_bias, d_y, stride, n - 1, width);
}

static void other_group_epsilon(struct wlb_device *d, void *out, int64_t out_stride, const void *x, int64_t x_stride,
                                const void *squares, const void *weight, const struct wlb_norm_groups *g)
{
	struct wlb_norm_groups other = *g;
	other.epsilon = 0;
	right->group_norm_forward(d, out, out_stride, x, x_stride, squares, weight, &other);
}

static void other_group_gradient(struct wlb_device *d, void *d_y, int64_t d_stride, void *d_weight, const void *x,
                                 int64_t x_stride, const void *squares, const void *products, const void *weight,
                                 const struct wlb_norm_groups *g)
{
	struct wlb_norm_groups other = *g;
	other.epsilon = 0;
	right->group_norm_backward(d, d_y, d_stride, d_weight, x, x_stride, squares, products, weight, &other);
}

static void other_epsilon(struct wlb_device *d, void *out, void *rstd, void *sum, const void *x, const void *residual,
                          const void *weight, double addend, int64_t tokens, int64_t width, double epsilon)
{
	(void)epsilon;
	right->rmsnorm_forward(d, out, rstd, sum, x, residual, weight, addend, tokens, width, 1e-5);
}

static void norm_without_one(struct wlb_device *d, void *out, void *rstd, void *sum, const void *x,
                             const void *residual, const void *weight, double addend, int64_t tokens, int64_t width,
                             double epsilon)
{
	(void)addend;
	right->rmsnorm_forward(d, out, rstd, sum, x, residual, weight, 0, tokens, width, epsilon);
}

static void other_gate(struct wlb_device *d, void *out, const void *gate_up, int64_t n, int64_t width)
{
	right->swiglu_forward(d, out, gate_up, n, width);
}

static void no_cap(struct wlb_device *d, void *x, double cap, int64_t n)
{
	(void)d, (void)x, (void)cap, (void)n;
}

static void rotated_twice(struct wlb_device *d, void *x, int64_t stride, const void *angles, int64_t tokens, int heads,
                          int head_dim, int pairs, int direction)
{
	(void)direction;
	right->rope(d, x, stride, angles, tokens, heads, head_dim, pairs, 1);
}

static void unscaled_angles(struct wlb_device *d, void *angles, const int32_t *positions, int64_t tokens,
                            const double *frequencies, int pairs, double scale)
{
	(void)scale;
	right->rope_angles(d, angles, positions, tokens, frequencies, pairs, 1);
}

typedef void any_operation(void);

static const struct fault {
	const char *variant;
	size_t operation; /* its offset in struct wlb_ops */
	any_operation *wrong;
} FAULTS[] = {
	{"qwen2", offsetof(struct wlb_ops, add_bias), (any_operation *)no_bias},
	{"qwen2", offsetof(struct wlb_ops, bias_backward), (any_operation *)bias_gradient_of_other_rows},
	{"qwen3", offsetof(struct wlb_ops, group_norm_forward), (any_operation *)other_group_epsilon},
	{"olmo2", offsetof(struct wlb_ops, group_norm_backward), (any_operation *)other_group_gradient},
	{"olmo2", offsetof(struct wlb_ops, rmsnorm_forward), (any_operation *)other_epsilon},
	{"gemma3", offsetof(struct wlb_ops, rmsnorm_forward), (any_operation *)norm_without_one},
	{"gemma2", offsetof(struct wlb_ops, geglu_forward), (any_operation *)other_gate},
	{"gemma2", offsetof(struct wlb_ops, softcap), (any_operation *)no_cap},
	{"phi3", offsetof(struct wlb_ops, rope), (any_operation *)rotated_twice},
	{"yarn", offsetof(struct wlb_ops, rope_angles), (any_operation *)unscaled_angles},
};

static const struct variant *variant_of(const char *name)
{
	int i = 0;
	while (strcmp(VARIANTS[i].name, name) != 0)
		i++;
	return &VARIANTS[i];
}

static void one_fault_is_found(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(FAULTS) / sizeof(FAULTS[0]); i++) {
		struct wlb_device *device = open_cuda();
		assert_non_null(device);
		struct wlb_ops ops = *device->ops;
		right = device->ops;
		memcpy((char *)&ops + FAULTS[i].operation, &FAULTS[i].wrong, sizeof(FAULTS[i].wrong));
		device->ops = &ops;
		assert_true(compare(variant_of(FAULTS[i].variant), device) > 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_family),
		cmocka_unit_test(one_fault_is_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
