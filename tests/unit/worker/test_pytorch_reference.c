/* Reads a Llama that Transformers saved, and compares logits, loss and gradients with those that Transformers and
 * PyTorch computed (tests/reference/make_fixture.py). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/model_config.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/model/published.h"
#include "worker/model/transformer.h"

enum { DOCUMENTS = 4, TOKENS = 25 };

static const int lengths[DOCUMENTS] = {7, 1, 12, 5}; /* LENGTHS of make_fixture.py */

struct reference_model {
	char folder[512];
	struct wlb_device *device;
	struct wlb_comm *world;
	struct wlb_groups *groups;
	struct wlb_parameters *parameters;
	struct wlb_transformer *transformer;
	struct wlb_micro_batch batch;
	struct wlb_segment *segments; /* device, as are the next four */
	int32_t *ids;
	int32_t *targets;
	int32_t *positions;
	double *loss_sum;
};

static struct wlb_error error;

static void assert_success(int ok)
{
	if (!ok)
		fail_msg("%s", error.message);
}

/* Reads a block of a tensor of the saved model, or of the values that Transformers computed with it. */
static void *read_block(const struct reference_model *o, const char *sub, const char *name, enum wlb_dtype dtype,
                        const struct wlb_tensor_block *block)
{
	char path[600];
	snprintf(path, sizeof(path), "%s%s", o->folder, sub);
	struct wlb_tensor_part part = {
		.name = name,
		.dtype = dtype,
		.block = *block,
		.data_host = malloc((size_t)wlb_tensor_block_elements(block) * wlb_dtype_bytes(dtype)),
	};
	assert_non_null(part.data_host);
	assert_success(wlb_checkpoint_read(path, &part, 1, &error) == 0);
	return part.data_host;
}

/* Reads all of a tensor. */
static void *read_tensor(const struct reference_model *o, const char *sub, const char *name, enum wlb_dtype dtype,
                         int64_t rows, int64_t cols)
{
	const struct wlb_tensor_block all = {cols == 1 ? 1 : 2, rows, cols, 0, rows, 0, cols};
	return read_block(o, sub, name, dtype, &all);
}

/* Reads one of our tensors, which may be rows of one of Transformers'. */
static void *read_ours(const struct reference_model *o, const char *sub, const struct wlb_tensor *t,
                       enum wlb_dtype dtype)
{
	char name[64];
	struct wlb_tensor_block block = t->block;
	wlb_published_block(&o->parameters->shape, t->name, name, &block);
	return read_block(o, sub, name, dtype, &block);
}

static void *to_device(struct reference_model *o, const void *from_host, size_t bytes)
{
	void *to = o->device->ops->alloc(o->device, bytes, &error);
	assert_success(to != NULL);
	o->device->ops->to_device(o->device, NULL, to, from_host, bytes);
	return to;
}

/* Puts all documents into one micro-batch; Transformers computed each one alone. */
static void make_batch(struct reference_model *o)
{
	double *tokens = read_tensor(o, "/expected", "tokens", WLB_FLOAT64, TOKENS + DOCUMENTS, 1);
	int32_t ids[TOKENS], targets[TOKENS], positions[TOKENS];
	struct wlb_segment segments[DOCUMENTS];
	int row = 0, longest = 0;
	for (int d = 0; d < DOCUMENTS; d++) {
		segments[d] = (struct wlb_segment){row, lengths[d], row, lengths[d], 0};
		longest = lengths[d] > longest ? lengths[d] : longest;
		for (int i = 0; i < lengths[d]; i++, row++) {
			ids[row] = (int32_t)tokens[row + d];
			targets[row] = (int32_t)tokens[row + d + 1];
			positions[row] = i;
		}
	}
	free(tokens);
	o->ids = to_device(o, ids, sizeof(ids));
	o->targets = to_device(o, targets, sizeof(targets));
	o->positions = to_device(o, positions, sizeof(positions));
	o->segments = to_device(o, segments, sizeof(segments));
	o->batch = (struct wlb_micro_batch){
		.tokens = TOKENS,
		.rows = TOKENS,
		.own_rows = TOKENS,
		.ids = o->ids,
		.targets = o->targets,
		.positions = o->positions,
		.segments = {.segments = o->segments, .count = DOCUMENTS, .max_q = longest, .max_k = longest},
	};
}

static void read_weights(struct reference_model *o)
{
	const struct wlb_parameters *p = o->parameters;
	for (int i = 0; i < p->count; i++) {
		const struct wlb_tensor *t = &p->tensors[i];
		void *weights = read_ours(o, "", t, o->device->compute);
		o->device->ops->to_device(o->device, NULL, wlb_weight(p, i), weights,
		                          (size_t)(t->block.rows * t->block.cols) *
		                                  wlb_dtype_bytes(o->device->compute));
		assert_success(o->device->ops->synchronize(o->device, &error) == 0);
		free(weights);
	}
}

static struct reference_model open_model(const char *name, enum wlb_dtype dtype)
{
	const struct wlb_plan plan = {.layout = {1, 1, 1, 1}, .interleave = 1, .micro_batches = 1, .zero_stage = 1};
	struct reference_model o = {0};
	struct wlb_model model;
	char config[600];
	const double zero = 0.0;
	snprintf(o.folder, sizeof(o.folder), WLB_REFERENCE_DIR "/%s", name);
	snprintf(config, sizeof(config), "%s/config.json", o.folder);
	assert_success(wlb_model_config_read(config, WLB_MODEL_TO_TRAIN, &model, &error) == 0);
	assert_success((o.device = wlb_device_open_cpu(dtype, 1, &error)) != NULL);
	assert_success((o.world = wlb_comm_open_world(o.device, 0, 1, &error)) != NULL);
	assert_success((o.groups = wlb_groups_open(o.world, &plan, 0, &model, &error)) != NULL);
	assert_success((o.parameters = wlb_parameters_new(&model, &plan, &o.groups->coords, o.device, &error)) != NULL);
	o.transformer = wlb_transformer_new(o.parameters, o.groups, &plan, 1, 1, TOKENS, TOKENS, &error);
	assert_success(o.transformer != NULL);
	o.loss_sum = to_device(&o, &zero, sizeof(zero));
	make_batch(&o);
	read_weights(&o);
	return o;
}

static void close_model(struct reference_model *o)
{
	void *const buffers[] = {o->ids, o->targets, o->positions, o->segments, o->loss_sum};
	for (size_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++)
		o->device->ops->release(o->device, buffers[i]);
	wlb_transformer_free(o->transformer);
	wlb_parameters_free(o->parameters);
	wlb_groups_close(o->groups);
	wlb_comm_close(o->world);
	wlb_device_close(o->device);
}

/* Fails where the greatest difference to Transformers' values exceeds `tolerance` times the greatest of them. */
static void compare(const struct reference_model *o, const char *name, const void *found, double *expected,
                    int64_t count, double tolerance)
{
	double greatest = 0.0, difference = 0.0;
	for (int64_t i = 0; i < count; i++) {
		double value =
			o->device->compute == WLB_FLOAT64 ? ((const double *)found)[i] : ((const float *)found)[i];
		greatest = fmax(greatest, fabs(expected[i]));
		difference = isnan(value) ? INFINITY : fmax(difference, fabs(value - expected[i]));
	}
	free(expected);
	if (!(difference <= tolerance * greatest))
		fail_msg("%s: %s differs by %g, the greatest value is %g", o->folder, name, difference, greatest);
}

static void compare_gradients(const struct reference_model *o, double tolerance)
{
	const struct wlb_parameters *p = o->parameters;
	for (int i = 0; i < p->count; i++) {
		const struct wlb_tensor *t = &p->tensors[i];
		size_t bytes = (size_t)(t->block.rows * t->block.cols) * wlb_dtype_bytes(o->device->compute);
		void *gradient = malloc(bytes);
		assert_non_null(gradient);
		o->device->ops->to_host(o->device, gradient, wlb_gradient(p, i), bytes);
		compare(o, t->name, gradient, read_ours(o, "/expected", t, WLB_FLOAT64),
		        wlb_tensor_block_elements(&t->block), tolerance);
		free(gradient);
	}
}

static void check(const char *name, enum wlb_dtype dtype, double tolerance)
{
	struct reference_model o = open_model(name, dtype);
	const struct wlb_ops *ops = o.device->ops;
	int64_t vocab = o.parameters->shape.vocab_size;
	double loss;
	void *logits = malloc((size_t)(TOKENS * vocab) * wlb_dtype_bytes(dtype));
	assert_non_null(logits);
	assert_success(wlb_logits(o.transformer, &o.batch, logits, &error) == 0);
	compare(&o, "logits", logits, read_tensor(&o, "/expected", "logits", WLB_FLOAT64, TOKENS, vocab),
	        TOKENS * vocab, tolerance);
	free(logits);

	struct wlb_slot *slot = wlb_transformer_slot(o.transformer, 0);
	assert_success(wlb_forward(o.transformer, 0, slot, &o.batch, &error) == 0);
	assert_success(wlb_head_loss(o.transformer, 0, slot, &o.batch, o.loss_sum, 1.0, NULL, &error) == 0);
	assert_success(wlb_backward(o.transformer, 0, slot, &o.batch, NULL, &error) == 0);
	assert_success(ops->synchronize(o.device, &error) == 0);
	ops->to_host(o.device, &loss, o.loss_sum, sizeof(loss));
	double *expected = read_tensor(&o, "/expected", "loss", WLB_FLOAT64, 1, 1);
	if (!(fabs(loss - *expected) <= tolerance * *expected))
		fail_msg("%s: the loss is %.17g, Transformers has %.17g", name, loss, *expected);
	free(expected);
	compare_gradients(&o, tolerance);
	close_model(&o);
}

/* The folders of make_fixture.py. */
static const char *const models[] = {"untied", "tied",  "llama3", "linear",  "yarn",   "mistral", "qwen2",
                                     "qwen3",  "olmo2", "phi3",   "smollm3", "gemma2", "gemma3"};

static void in_float64(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
		check(models[i], WLB_FLOAT64, 1e-12);
}

static void in_float32(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
		check(models[i], WLB_FLOAT32, 1e-4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_float64),
		cmocka_unit_test(in_float32),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
