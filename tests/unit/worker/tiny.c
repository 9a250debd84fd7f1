#include "tests/unit/worker/tiny.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "worker/model/activations.h"

const struct tiny_document tiny_documents[3] = {
	{5, {3, 1, 4, 1, 5, 9}},
	{1, {2, 6}},
	{7, {10, 0, 8, 2, 8, 1, 7, 3}},
};

static int at_least_one(int ways)
{
	return ways > 0 ? ways : 1;
}

static struct wlb_model shape_of(const struct tiny_setup *setup)
{
	struct wlb_model shape = {
		.hidden_size = 8,
		.intermediate_size = 14,
		.num_hidden_layers = setup->layers > 0 ? setup->layers : 2,
		.num_attention_heads = 4,
		.num_key_value_heads = 2,
		.head_dim = 4,
		.vocab_size = TINY_VOCAB,
		.max_position_embeddings = 64,
		.rope_theta = 100.0,
		.rms_norm_eps = 1e-5,
		.tie_word_embeddings = setup->tied,
		.family = setup->family,
	};
	const struct wlb_family_row *family = wlb_family(setup->family);
	if (family->scales_embedding) {
		shape.query_pre_attn_scalar = 5.0;
		shape.final_logit_softcapping = 6.0;
	}
	shape.attn_logit_softcapping = family->score_softcap ? 2.0 : 0.0;
	if (family->local_rope) {
		shape.rope_local_base_freq = 30.0;
		shape.sliding_window = 64; /* longer than the documents: for the angles alone */
		shape.full_layers[0] = 2;
	}
	return shape;
}

/* Opens it with the least limits that the documents need, so that a buffer that is too small reaches into the next. */
static void open_transformer(struct tiny *tiny, const struct tiny_setup *setup, const struct wlb_plan *split)
{
	int tp = at_least_one(setup->tp), cp = at_least_one(setup->cp);
	int tokens = setup->max_tokens > 0 ? setup->max_tokens : TINY_TOKENS;
	int rows = ((tokens + cp - 1) / cp + tp - 1) / tp * tp;
	struct wlb_error error = {0};
	tiny->transformer = wlb_transformer_new(tiny->parameters, tiny->groups, split, at_least_one(setup->slots),
	                                        at_least_one(setup->slots), rows, tokens, &error);
	assert_non_null(tiny->transformer);
	tiny_poison(tiny);
}

static void open_groups(struct tiny *tiny, const struct tiny_setup *setup, const struct wlb_model *shape)
{
	struct wlb_plan plan = {.layout = {at_least_one(setup->tp), at_least_one(setup->cp), 1, 1}};
	struct wlb_error error = {0};
	if (setup->world == NULL)
		tiny->alone = wlb_comm_open_world(tiny->device, 0, 1, &error);
	struct wlb_comm *world = setup->world != NULL ? setup->world : tiny->alone;
	assert_non_null(world);
	tiny->groups = wlb_groups_open(world, &plan, wlb_comm_rank(world), shape, &error);
	assert_non_null(tiny->groups);
}

/* Norms of queries and keys that are all ones, and biases and norms of zeros, would not tell which of them a rank has.
 */
static void set_vectors(const struct wlb_parameters *p)
{
	for (int i = 0; i < p->count; i++) {
		const struct wlb_tensor *t = &p->tensors[i];
		double *values = wlb_weight(p, i);
		int is_vector =
			t->block.dimensions == 1 && (strstr(t->name, "self_attn") != NULL || t->init == WLB_INIT_ZEROS);
		for (int64_t row = 0; is_vector && row < t->block.rows; row++)
			values[row] += 0.1 * (double)((t->block.row_start + row) * 3 % 7 - 3);
	}
}

struct tiny tiny_open(const struct tiny_setup *setup)
{
	struct wlb_model shape = shape_of(setup);
	struct wlb_error error = {0};
	struct tiny tiny = {.device = wlb_device_open_cpu(WLB_FLOAT64, 1, &error)};
	assert_non_null(tiny.device);
	open_groups(&tiny, setup, &shape);
	struct wlb_plan plan = {.layout = tiny.groups->layout,
	                        .interleave = at_least_one(setup->interleave),
	                        .micro_batches = 4,
	                        .recompute = setup->recompute,
	                        .recompute_layers = setup->recompute_layers};
	struct wlb_coordinates coords = tiny.groups->coords;
	plan.layout.pp = at_least_one(setup->pp);
	coords.pp = setup->stage;
	tiny.parameters = wlb_parameters_new(&shape, &plan, &coords, tiny.device, &error);
	assert_non_null(tiny.parameters);
	/* Weights so large that every part of the model affects the loss. */
	assert_int_equal(wlb_parameters_init(tiny.parameters, 7, 0.5, NULL, NULL, &error), 0);
	set_vectors(tiny.parameters);
	open_transformer(&tiny, setup, &plan);
	tiny.loss_sum = tiny.device->ops->alloc(tiny.device, sizeof(double), &error);
	assert_non_null(tiny.loss_sum);
	return tiny;
}

void tiny_close(struct tiny *tiny)
{
	tiny->device->ops->release(tiny->device, tiny->loss_sum);
	wlb_transformer_free(tiny->transformer);
	wlb_parameters_free(tiny->parameters);
	wlb_groups_close(tiny->groups);
	wlb_comm_close(tiny->alone);
	wlb_device_close(tiny->device);
}

void tiny_poison(struct tiny *tiny)
{
	memset(tiny->transformer->block, 0xff, tiny->transformer->bytes);
}

double tiny_pass(struct tiny *tiny, const struct wlb_micro_batch *batch, double scale)
{
	struct wlb_transformer *t = tiny->transformer;
	struct wlb_slot *slot = wlb_transformer_slot(t, 0);
	struct wlb_error error = {0};
	const struct wlb_ops *ops = tiny->device->ops;
	double sum = 0.0;
	ops->zero(tiny->device, tiny->loss_sum, sizeof(double));
	assert_int_equal(wlb_forward(t, 0, slot, batch, &error), 0);
	assert_int_equal(wlb_head_loss(t, 0, slot, batch, tiny->loss_sum, scale, NULL, &error), 0);
	assert_int_equal(wlb_backward(t, 0, slot, batch, NULL, &error), 0);
	ops->to_host(tiny->device, &sum, tiny->loss_sum, sizeof(sum));
	assert_int_equal(ops->synchronize(tiny->device, &error), 0);
	return sum;
}

double tiny_pass_documents(struct tiny *tiny, const struct tiny_document *documents, int count, double scale)
{
	struct wlb_groups *g = tiny->groups;
	struct tiny_batch b = tiny_batch_new(tiny->device, documents, count, WLB_SHARDING_SEQUENCE, g->layout.tp,
	                                     g->layout.cp, g->coords.cp);
	double sum = tiny_pass(tiny, &b.batch, scale);
	tiny_batch_free(&b);
	return sum;
}

int tiny_tensor(const struct wlb_parameters *p, const char *name)
{
	for (int i = 0; i < p->count; i++)
		if (strcmp(p->tensors[i].name, name) == 0)
			return i;
	return -1;
}

double tiny_difference(double value, double expected)
{
	double difference = fabs(value - expected) / fmax(1.0, fabs(expected));
	return isnan(difference) ? INFINITY : difference;
}
