#include "tests/unit/worker/tiny.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

const struct tiny_document tiny_documents[3] = {
	{5, {3, 1, 4, 1, 5, 9}},
	{1, {2, 6}},
	{7, {10, 0, 8, 2, 8, 1, 7, 3}},
};

struct tiny tiny_open(int tied)
{
	struct wlb_model shape = {
		.hidden_size = 8,
		.intermediate_size = 12,
		.num_hidden_layers = 2,
		.num_attention_heads = 4,
		.num_key_value_heads = 2,
		.head_dim = 4,
		.vocab_size = TINY_VOCAB,
		.max_position_embeddings = TINY_MAX_TOKENS,
		.rope_theta = 100.0,
		.rms_norm_eps = 1e-5,
		.tie_word_embeddings = tied,
	};
	struct wlb_error error = {0};
	struct tiny tiny = {.device = wlb_device_open_cpu(WLB_FLOAT64, 1, &error)};
	assert_non_null(tiny.device);
	tiny.parameters = wlb_parameters_new(&shape, tiny.device, &error);
	tiny.activations = wlb_activations_new(&shape, tiny.device, TINY_MAX_TOKENS, &error);
	tiny.batch = wlb_micro_batch_new(tiny.device, TINY_MAX_TOKENS, &error);
	tiny.loss_sum = tiny.device->ops->alloc(tiny.device, sizeof(double), &error);
	assert_non_null(tiny.parameters);
	assert_non_null(tiny.activations);
	assert_non_null(tiny.batch);
	assert_non_null(tiny.loss_sum);
	/* Weights so large that every part of the model has a say in the loss. */
	assert_int_equal(wlb_parameters_init(tiny.parameters, 7, 0.5, &error), 0);
	return tiny;
}

void tiny_close(struct tiny *tiny)
{
	tiny->device->ops->release(tiny->device, tiny->loss_sum);
	wlb_micro_batch_free(tiny->batch);
	wlb_activations_free(tiny->activations);
	wlb_parameters_free(tiny->parameters);
	wlb_device_close(tiny->device);
}

double tiny_pass(struct tiny *tiny, const struct tiny_document *documents, int count, double scale, int gradients)
{
	struct wlb_error error = {0};
	const struct wlb_ops *ops = tiny->device->ops;
	double sum = 0.0;
	wlb_micro_batch_clear(tiny->batch);
	for (int i = 0; i < count; i++)
		assert_int_equal(wlb_micro_batch_add(tiny->batch, documents[i].tokens, documents[i].length, &error), 0);
	wlb_micro_batch_upload(tiny->batch);
	ops->zero(tiny->device, tiny->loss_sum, sizeof(double));
	wlb_forward(tiny->parameters, tiny->activations, tiny->batch);
	wlb_loss(tiny->parameters, tiny->activations, tiny->batch, tiny->loss_sum, scale);
	if (gradients)
		wlb_backward(tiny->parameters, tiny->activations, tiny->batch);
	assert_int_equal(ops->synchronize(tiny->device, &error), 0);
	ops->to_host(tiny->device, &sum, tiny->loss_sum, sizeof(sum));
	return sum;
}
