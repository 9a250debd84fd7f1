/*
 * AdamW, clipping and the learning rate against numbers worked out by hand; and on as many ranks as mpirun starts, the
 * optimizer of a layout against that of one rank which has the summed gradients.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/bfloat16.h"
#include "worker/launch/launch.h"
#include "worker/model/gradients.h"
#include "worker/model/philox.h"
#include "worker/optimizer/learning_rate.h"
#include "worker/optimizer/optimizer.h"
#include "worker/optimizer/reduce.h"

static struct wlb_device *device;
static struct wlb_comm *world;
static struct wlb_comm *alone; /* each rank has its own, for what it compares with */

static void assert_near(double value, double expected)
{
	if (fabs(value - expected) > 1e-12)
		fail_msg("%.17g, expected %.17g", value, expected);
}

static const struct wlb_optimizer_options options = {
	.beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8, .weight_decay = 0.1, .clip_grad = 0.0};

/* ---- a rank with its parameters and optimizer ---- */

struct part_case {
	struct wlb_layout layout;
	int32_t interleave;
	int64_t kv_heads;
	int tied;
	enum wlb_family family;
};

static const struct part_case one_rank = {{1, 1, 1, 1}, 1, 2, 0, WLB_FAMILY_LLAMA};

struct trained {
	struct wlb_groups *groups;
	struct wlb_parameters *parameters;
	struct wlb_optimizer *optimizer;
	double sums[WLB_STEP_SUMS];
};

/* One step of the optimizer; the norm is not a number where the step must not have changed anything. */
static double update(struct trained *t, int64_t step, double lr, double loss)
{
	struct wlb_error error = {0};
	t->sums[WLB_SUM_LOSS] = loss;
	assert_int_equal(wlb_optimizer_step(t->optimizer, step, lr, INFINITY, t->sums, &error), 0);
	assert_int_equal(device->ops->synchronize(device, &error), 0);
	return t->sums[WLB_CLIP_FACTOR] != 0.0 ? sqrt(t->sums[WLB_SUM_SQUARES]) : NAN;
}

static struct trained staged_open(struct wlb_comm *comm, const struct wlb_layout *layout, const struct part_case *c,
                                  double clip_grad, int zero_stage, int micro_batches)
{
	struct wlb_model shape = {
		.hidden_size = 10,
		.intermediate_size = 13,
		.num_hidden_layers = 5,
		.num_attention_heads = 4,
		.num_key_value_heads = c->kv_heads,
		.head_dim = 2,
		.vocab_size = 23,
		.max_position_embeddings = 8,
		.rope_theta = 1e4,
		.rms_norm_eps = 1e-5,
		.tie_word_embeddings = c->tied,
		.family = c->family,
	};
	struct wlb_error error = {0};
	struct wlb_plan plan = {.layout = *layout,
	                        .interleave = layout->pp > 1 ? c->interleave : 1,
	                        .zero_stage = zero_stage,
	                        .micro_batches = micro_batches};
	struct wlb_optimizer_options chosen = options;
	struct trained t = {.groups = wlb_groups_open(comm, &plan, wlb_comm_rank(comm), &shape, &error)};
	chosen.clip_grad = clip_grad;
	assert_non_null(t.groups);
	t.parameters = wlb_parameters_new(&shape, &plan, &t.groups->coords, device, &error);
	assert_non_null(t.parameters);
	assert_int_equal(wlb_parameters_init(t.parameters, 5, 0.5, NULL, NULL, &error), 0);
	t.optimizer = wlb_optimizer_new(t.parameters, t.groups, &chosen, &error);
	assert_non_null(t.optimizer);
	return t;
}

static struct trained trained_open(struct wlb_comm *comm, const struct wlb_layout *layout, const struct part_case *c,
                                   double clip_grad)
{
	return staged_open(comm, layout, c, clip_grad, 1, 1);
}

static void trained_close(struct trained *t)
{
	wlb_optimizer_free(t->optimizer);
	wlb_parameters_free(t->parameters);
	wlb_groups_close(t->groups);
}

/* ---- one rank, by hand ---- */

/* All gradients 0 but one of a matrix and one of a norm. */
static void set_gradients(struct trained *t, double matrix, double vector)
{
	const struct wlb_parameters *p = t->parameters;
	wlb_optimizer_begin(t->optimizer);
	((double *)wlb_gradient_to_add(p, p->chunks[0].tensors[0].q))[1] = matrix;
	((double *)wlb_gradient_to_add(p, p->final_norm))[2] = vector;
}

static void two_updates_by_hand(void **state)
{
	struct trained t = trained_open(alone, &one_rank.layout, &one_rank, 0.0);
	const struct wlb_parameters *p = t.parameters;
	double *w = (double *)wlb_weight(p, p->chunks[0].tensors[0].q) + 1;
	double *n = (double *)wlb_weight(p, p->final_norm) + 2;
	*w = 2.0;
	*n = 1.0;

	set_gradients(&t, 3.0, -4.0);
	assert_near(update(&t, 1, 0.01, 0.0), 5.0);
	/* m = 0.3, v = 0.09; both corrected give 3 and 9: the first update is lr * sign(g), after decay. */
	double w1 = 2.0 - 0.01 * 0.1 * 2.0 - 0.01 * 3.0 / (3.0 + 1e-8);
	assert_near(*w, w1);
	assert_near(*n, 1.0 + 0.01 * 4.0 / (4.0 + 1e-8)); /* no decay of a vector */

	set_gradients(&t, 1.0, 0.0);
	update(&t, 2, 0.02, 0.0);
	double m = 0.9 * 0.3 + 0.1 * 1.0, v = 0.99 * 0.09 + 0.01 * 1.0;
	double update = m / (1.0 - 0.81) / (sqrt(v / (1.0 - 0.9801)) + 1e-8);
	assert_near(*w, w1 - 0.02 * 0.1 * w1 - 0.02 * update);
	trained_close(&t);
	(void)state;
}

/* Gradients of 0: what changes has decayed. */
static void matrices_alone_decay(void **state)
{
	static const enum wlb_family families[] = {WLB_FAMILY_QWEN2, WLB_FAMILY_QWEN3, WLB_FAMILY_OLMO2,
	                                           WLB_FAMILY_GEMMA3};
	for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
		const struct part_case c = {one_rank.layout, 1, 2, 0, families[f]};
		struct trained t = trained_open(alone, &c.layout, &c, 0.0);
		const struct wlb_parameters *p = t.parameters;
		for (int i = 0; i < p->count; i++)
			*(double *)wlb_weight(p, i) = 2.0;
		wlb_optimizer_begin(t.optimizer);
		update(&t, 1, 0.01, 0.0);
		for (int i = 0; i < p->count; i++)
			assert_near(*(double *)wlb_weight(p, i),
			            p->tensors[i].block.dimensions == 2 ? 2.0 - 0.01 * 0.1 * 2.0 : 2.0);
		trained_close(&t);
	}
	(void)state;
}

/* The first moment of the matrix's element. */
static double first_moment(struct trained *t)
{
	struct wlb_error error = {0};
	const struct wlb_element_range second = {1, 2};
	double moment;
	assert_int_equal(wlb_optimizer_fetch(t->optimizer, NULL, WLB_STATE_FIRST_MOMENTS,
	                                     t->parameters->chunks[0].tensors[0].q, second, &moment, &error),
	                 0);
	assert_int_equal(device->ops->synchronize(device, &error), 0);
	return moment;
}

/* ---- the queue of updates, which the CPU device does not have: what waits for it is noted ---- */

static const struct wlb_ops *noted_ops;
static struct wlb_queue *of_updates, *waited; /* the last update's, and the one that waited for its end */
static struct wlb_event *behind_updates;      /* recorded there since */

static void note_adamw(struct wlb_device *of, void *param, void *master, const void *grad, void *m, void *v, int64_t n,
                       const struct wlb_adamw *settings, const double *factor)
{
	of_updates = settings->queue;
	behind_updates = NULL;
	noted_ops->adamw(of, param, master, grad, m, v, n, settings, factor);
}

static void note_record(struct wlb_device *of, struct wlb_event *event, struct wlb_queue *queue)
{
	behind_updates = queue != NULL && queue == of_updates ? event : behind_updates;
	noted_ops->event_record(of, event, queue);
}

static void note_wait(struct wlb_device *of, struct wlb_queue *queue, struct wlb_event *event)
{
	waited = event == behind_updates ? queue : waited;
	noted_ops->queue_wait(of, queue, event);
}

/* A copy of what a step has updated waits for the updates, on whichever queue it is. */
static void a_copy_waits_for_the_updates(void **state)
{
	struct wlb_error error = {0};
	noted_ops = device->ops;
	struct wlb_ops ops = *noted_ops;
	ops.adamw = note_adamw;
	ops.event_record = note_record;
	ops.queue_wait = note_wait;
	device->ops = &ops;
	struct trained t = trained_open(alone, &one_rank.layout, &one_rank, 0.0);
	struct wlb_queue *copies = ops.queue_new(device, 0, &error);
	set_gradients(&t, 3.0, -4.0);
	update(&t, 1, 0.01, 0.0);
	assert_true(of_updates != NULL && behind_updates != NULL && waited == NULL);
	double value;
	const struct wlb_element_range first = {0, 1};
	assert_int_equal(wlb_optimizer_fetch(t.optimizer, copies, WLB_STATE_FIRST_MOMENTS,
	                                     t.parameters->chunks[0].tensors[0].q, first, &value, &error),
	                 0);
	assert_true(waited == copies);
	ops.queue_free(device, copies);
	trained_close(&t);
	device->ops = noted_ops;
	(void)state;
}

static void clipping_scales_what_is_too_long(void **state)
{
	struct trained t = trained_open(alone, &one_rank.layout, &one_rank, 1.0);

	set_gradients(&t, 3.0, -4.0);
	assert_near(update(&t, 1, 0.01, 0.0), 5.0);
	assert_near(first_moment(&t), 0.1 * 3.0 / (5.0 + 1e-6));

	set_gradients(&t, 0.3, -0.4);
	assert_near(update(&t, 2, 0.01, 0.0), 0.5);
	assert_near(first_moment(&t), 0.9 * 0.1 * 3.0 / (5.0 + 1e-6) + 0.1 * 0.3);
	trained_close(&t);
	(void)state;
}

static void learning_rate_warms_up_and_decays(void **state)
{
	struct wlb_lr_schedule s = {.max_lr = 1.0, .min_lr = 0.1, .warmup_iters = 10, .decay_iters = 110};
	s.decay = WLB_LR_COSINE;
	assert_near(wlb_learning_rate(&s, 1), 0.1);
	assert_near(wlb_learning_rate(&s, 10), 1.0);
	assert_near(wlb_learning_rate(&s, 35), 0.1 + 0.9 * 0.5 * (1.0 + sqrt(0.5)));
	assert_near(wlb_learning_rate(&s, 60), 0.55);
	assert_near(wlb_learning_rate(&s, 110), 0.1);
	assert_near(wlb_learning_rate(&s, 111), 0.1);
	s.decay = WLB_LR_LINEAR;
	assert_near(wlb_learning_rate(&s, 35), 0.1 + 0.9 * 0.75);
	s.decay = WLB_LR_CONSTANT;
	assert_near(wlb_learning_rate(&s, 5), 0.5);
	assert_near(wlb_learning_rate(&s, 1000), 1.0);
	s.warmup_iters = 0;
	assert_near(wlb_learning_rate(&s, 1), 1.0);
	(void)state;
}

/* ---- several ranks against one ---- */

static const struct part_case cases[] = {
	{{1, 1, 1, 1}, 1, 2, 0, WLB_FAMILY_LLAMA}, {{1, 1, 1, 1}, 1, 2, 1, WLB_FAMILY_QWEN2},
	{{1, 1, 1, 4}, 1, 2, 0, WLB_FAMILY_LLAMA}, {{2, 1, 1, 2}, 1, 2, 1, WLB_FAMILY_LLAMA},
	{{2, 1, 1, 2}, 1, 1, 0, WLB_FAMILY_LLAMA}, {{1, 1, 2, 2}, 1, 2, 1, WLB_FAMILY_LLAMA},
	{{4, 1, 1, 1}, 1, 2, 0, WLB_FAMILY_LLAMA}, {{2, 1, 2, 1}, 1, 1, 1, WLB_FAMILY_LLAMA},
	{{1, 2, 1, 2}, 1, 4, 0, WLB_FAMILY_LLAMA}, {{1, 2, 2, 1}, 2, 2, 1, WLB_FAMILY_LLAMA},
	{{1, 1, 4, 1}, 1, 2, 1, WLB_FAMILY_LLAMA}, {{4, 1, 1, 1}, 1, 1, 1, WLB_FAMILY_LLAMA},
	{{2, 1, 1, 2}, 1, 1, 0, WLB_FAMILY_QWEN2}, {{2, 1, 2, 1}, 1, 2, 1, WLB_FAMILY_QWEN3},
	{{4, 1, 1, 1}, 1, 2, 0, WLB_FAMILY_OLMO2}, {{2, 1, 1, 2}, 1, 2, 1, WLB_FAMILY_OLMO2},
};

static void for_each_case(void (*check)(const struct part_case *))
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (wlb_layout_ranks(&cases[i].layout) == wlb_comm_size(world))
			check(&cases[i]);
}

/* Returns 1 where `holds` is 1 on all ranks: a rank that failed its test alone would leave the others waiting. */
static int everywhere(int holds)
{
	struct wlb_error error = {0};
	double failed = !holds;
	assert_int_equal(wlb_comm_all_reduce_double(world, &failed, 1, WLB_MAX, &error), 0);
	return failed == 0.0;
}

static int is_part_of(const char *name, const char *part)
{
	return strstr(name, part) != NULL;
}

/* How many ranks beside those of the data group add to the gradient of a tensor. */
static int copies(const struct part_case *c, const char *name)
{
	int is_cut_norm = wlb_family(c->family)->qk_norm == WLB_QK_NORM_ALL && is_part_of(name, "self_attn");
	int of_kv = is_part_of(name, "k_proj") || is_part_of(name, "v_proj") || is_part_of(name, "k_norm");
	if (is_part_of(name, "norm") && !is_cut_norm)
		return c->layout.tp;
	if (of_kv && c->kv_heads < c->layout.tp)
		return c->layout.tp / (int)c->kv_heads;
	return c->tied && c->layout.pp > 1 && is_part_of(name, "embed_tokens") ? 2 : 1;
}

/* Which of them this rank is. */
static int copy_of(const struct part_case *c, const struct wlb_coordinates *coords, const char *name)
{
	return is_part_of(name, "embed_tokens") ? coords->pp > 0 && copies(c, name) > 1 : coords->tp % copies(c, name);
}

/* What contributor `who` adds to the gradient of an element. */
static double contribution(int64_t step, const char *name, int64_t element, int who)
{
	uint64_t stream = (uint64_t)who;
	for (; *name != '\0'; name++)
		stream = stream * 31 + (unsigned char)*name;
	return wlb_philox_normal((uint64_t)step, stream, (uint64_t)element);
}

/* Writes the contributions first to last into the gradients of a tensor. */
static void contribute(const struct wlb_parameters *p, int tensor, int64_t step, int first, int last)
{
	const struct wlb_tensor *t = &p->tensors[tensor];
	double *gradient = wlb_gradient_to_add(p, tensor);
	for (int64_t i = 0; i < t->block.rows * t->block.cols; i++) {
		int64_t row = t->block.row_start + i / t->block.cols, col = t->block.col_start + i % t->block.cols;
		for (int who = first; who <= last; who++)
			gradient[i] += contribution(step, t->name, row * t->block.global_cols + col, who);
	}
}

/* A tensor's gradient as this rank's backward pass leaves it. */
static void backward_of_tensor(const struct trained *t, const struct part_case *c, int tensor, int64_t step)
{
	const char *name = t->parameters->tensors[tensor].name;
	int who = wlb_comm_rank(t->groups->data) * copies(c, name) + copy_of(c, &t->groups->coords, name);
	contribute(t->parameters, tensor, step, who, who);
}

static void backward_of_layer(const struct trained *t, const struct part_case *c, int chunk, int layer, int64_t step)
{
	const struct wlb_parameters *p = t->parameters;
	if (layer == p->chunks[chunk].layers) {
		backward_of_tensor(t, c, p->final_norm, step);
		backward_of_tensor(t, c, p->head, step);
	} else if (layer == -1) {
		/* the embedding, which a tied head on the same rank has already counted */
		if (p->embedding != p->head)
			backward_of_tensor(t, c, p->embedding, step);
	} else {
		const struct wlb_layer_tensors *tensors = &p->chunks[chunk].tensors[layer];
		for (const int *tensor = &tensors->input_norm; tensor <= &tensors->down; tensor++)
			if (*tensor >= 0)
				backward_of_tensor(t, c, *tensor, step);
	}
}

/* Gradients are set layer by layer, and each is reported when it is complete; the last rank of a data group has all of
 * them in an earlier pass and reports whole chunks. */
static void backward(struct trained *t, const struct part_case *c, int64_t step)
{
	struct wlb_error error = {0};
	const struct wlb_parameters *p = t->parameters;
	int whole_chunks = wlb_comm_rank(t->groups->data) == wlb_comm_size(t->groups->data) - 1;
	wlb_optimizer_begin(t->optimizer);
	for (int chunk = p->chunk_count - 1; chunk >= 0; chunk--) {
		int first = p->chunks[chunk].layers - !p->chunks[chunk].has_head;
		for (int layer = first; layer >= -p->chunks[chunk].has_embedding; layer--) {
			backward_of_layer(t, c, chunk, layer, step);
			if (!whole_chunks)
				assert_int_equal(wlb_optimizer_layer_done(t->optimizer, chunk, layer, &error), 0);
		}
		if (whole_chunks)
			assert_int_equal(wlb_optimizer_chunk_done(t->optimizer, chunk, &error), 0);
	}
}

static void backward_of_all(struct trained *t, const struct part_case *c, int64_t step)
{
	const struct wlb_parameters *p = t->parameters;
	wlb_optimizer_begin(t->optimizer);
	for (int i = 0; i < p->count; i++)
		contribute(p, i, step, 0, c->layout.dp * c->layout.cp * copies(c, p->tensors[i].name) - 1);
}

/* Whether this rank's blocks in a flat buffer (0 weights, 1 gradients) are those of the whole model's. */
static int like_whole(const struct wlb_parameters *p, const struct wlb_parameters *whole, int gradients)
{
	double most = 0.0;
	for (int i = 0; i < p->count; i++) {
		const struct wlb_tensor *t = &p->tensors[i];
		int w = 0;
		while (strcmp(whole->tensors[w].name, t->name) != 0)
			w++;
		const double *own = gradients ? wlb_gradient(p, i) : wlb_weight(p, i);
		const double *expected = gradients ? wlb_gradient(whole, w) : wlb_weight(whole, w);
		for (int64_t at = 0; at < t->block.rows * t->block.cols; at++) {
			int64_t row = t->block.row_start + at / t->block.cols,
				col = t->block.col_start + at % t->block.cols;
			double difference = fabs(own[at] - expected[row * t->block.global_cols + col]);
			most = difference <= most ? most : difference;
		}
	}
	return most <= 1e-12;
}

/* Whether all ranks of a group have the same bits. */
static int same_bits(struct wlb_comm *group, const double *values, size_t count)
{
	struct wlb_error error = {0};
	double *most = malloc(2 * count * sizeof(*most));
	int same = 1;
	assert_non_null(most);
	for (size_t i = 0; i < count; i++) {
		most[i] = values[i];
		most[count + i] = -values[i];
	}
	assert_int_equal(wlb_comm_all_reduce_double(group, most, 2 * count, WLB_MAX, &error), 0);
	for (size_t i = 0; i < count; i++)
		same &= most[i] == values[i] && most[count + i] == -values[i];
	free(most);
	return same;
}

/* Whether every rank that holds the same weights has the same bits of them. */
static int same_weights(const struct trained *t)
{
	const struct wlb_parameters *p = t->parameters;
	int same = same_bits(t->groups->data, p->weights, p->elements);
	for (int b = 0; b < p->bucket_count; b++) {
		const struct wlb_bucket *bucket = &p->buckets[b];
		const double *weights = (const double *)p->weights + bucket->offset;
		if (bucket->kind == WLB_BUCKET_NORMS)
			same &= same_bits(t->groups->tp, weights, bucket->elements);
		else if (bucket->kind == WLB_BUCKET_KV)
			same &= same_bits(t->groups->kv, weights, bucket->elements);
		else if (bucket->kind == WLB_BUCKET_TIED)
			same &= same_bits(t->groups->tied, weights, bucket->elements);
	}
	return same;
}

/* One step of the layout and of one rank; whether they agree. */
static int steps_agree(struct trained *t, struct trained *whole, const struct part_case *c, int64_t step)
{
	backward(t, c, step);
	double norm = update(t, step, 0.01, 1.0);
	backward_of_all(whole, c, step);
	double expected = update(whole, step, 0.01, 1.0);
	return fabs(norm / expected - 1.0) < 1e-12 && like_whole(t->parameters, whole->parameters, 0);
}

static void check_steps(const struct part_case *c)
{
	struct trained t = trained_open(world, &c->layout, c, 5.0);
	struct trained whole = trained_open(alone, &one_rank.layout, c, 5.0);
	for (int64_t step = 1; step <= 4; step++) {
		assert_true(everywhere(steps_agree(&t, &whole, c, step)));
		assert_true(everywhere(same_weights(&t)));
	}
	trained_close(&whole);
	trained_close(&t);
}

static void a_layout_updates_as_one_rank(void **state)
{
	for_each_case(check_steps);
	(void)state;
}

/* ---- ZeRO stage 2 against stage 1 ---- */

enum { PASSES = 3, IDLE_PASS = 1 };

/* A backward pass; the last rank of a data group has no tokens in the one that is IDLE_PASS, and reports whole chunks.
 */
static void one_pass(struct trained *t, const struct part_case *c, int64_t step, int pass, int passes)
{
	struct wlb_error error = {0};
	const struct wlb_parameters *p = t->parameters;
	int is_idle = pass == IDLE_PASS && wlb_comm_rank(t->groups->data) == wlb_comm_size(t->groups->data) - 1;
	assert_int_equal(wlb_optimizer_begin_pass(t->optimizer, pass == passes - 1, &error), 0);
	if (is_idle) {
		assert_int_equal(wlb_optimizer_chunk_done(t->optimizer, 0, &error), 0);
		return;
	}
	for (int layer = p->chunks[0].layers; layer >= -1; layer--) {
		backward_of_layer(t, c, 0, layer, step * PASSES + pass);
		assert_int_equal(wlb_optimizer_layer_done(t->optimizer, 0, layer, &error), 0);
	}
}

/* The gradients of all ranks and passes in one. */
static void all_passes(struct trained *whole, const struct part_case *c, int64_t step, int passes)
{
	const struct wlb_parameters *p = whole->parameters;
	wlb_optimizer_begin(whole->optimizer);
	for (int pass = 0; pass < passes; pass++)
		for (int i = 0; i < p->count; i++) {
			int ranks = c->layout.dp * c->layout.cp - (pass == IDLE_PASS);
			contribute(p, i, step * PASSES + pass, 0, ranks * copies(c, p->tensors[i].name) - 1);
		}
}

static double passes_of(struct trained *t, const struct part_case *c, int64_t step, int passes)
{
	wlb_optimizer_begin(t->optimizer);
	for (int pass = 0; pass < passes; pass++)
		one_pass(t, c, step, pass, passes);
	return update(t, step, 0.01, 1.0);
}

/* What other buckets have left there, padding included, must be in no sum. */
static void spoil_passing(const struct trained *t)
{
	const struct wlb_parameters *p = t->parameters;
	for (int b = 0; b < p->bucket_count; b++)
		for (size_t i = 0; i < p->buckets[b].elements && p->buckets[b].is_passing; i++)
			((double *)p->gradients)[p->buckets[b].gradient_offset + i] = NAN;
}

static int same_norm_and_weights(const struct trained *a, double norm_a, const struct trained *b, double norm_b)
{
	size_t bytes = a->parameters->elements * sizeof(double);
	return norm_a == norm_b && memcmp(a->parameters->weights, b->parameters->weights, bytes) == 0;
}

/* With one pass the bits of stage 1, in less memory; with several the sums of all. */
static void check_stages(const struct part_case *c)
{
	if (c->layout.pp > 1 || c->layout.dp * c->layout.cp == 1)
		return;
	struct trained first = staged_open(world, &c->layout, c, 5.0, 1, 1);
	struct trained second = staged_open(world, &c->layout, c, 5.0, 2, 1);
	struct trained several = staged_open(world, &c->layout, c, 5.0, 2, PASSES);
	struct trained whole = trained_open(alone, &one_rank.layout, c, 5.0);
	assert_true(second.parameters->gradient_elements < first.parameters->gradient_elements || c->tied);
	assert_true(first.parameters->gradient_elements == first.parameters->elements);
	for (int64_t step = 1; step <= 3; step++) {
		spoil_passing(&second);
		spoil_passing(&several);
		double norms[] = {passes_of(&first, c, step, 1), passes_of(&second, c, step, 1)};
		assert_true(everywhere(same_norm_and_weights(&first, norms[0], &second, norms[1])));
		double norm = passes_of(&several, c, step, PASSES);
		all_passes(&whole, c, step, PASSES);
		double expected = update(&whole, step, 0.01, 1.0);
		assert_true(everywhere(fabs(norm / expected - 1.0) < 1e-12 &&
		                       like_whole(several.parameters, whole.parameters, 0)));
		assert_true(everywhere(same_weights(&several)));
	}
	trained_close(&whole);
	trained_close(&several);
	trained_close(&second);
	trained_close(&first);
}

static void zero_2_updates_as_zero_1(void **state)
{
	for_each_case(check_stages);
	(void)state;
}

enum spoilt { SPOILT_MATRIX, SPOILT_NORM, SPOILT_LOSS };

/* A step in which the last rank alone has a gradient or a loss that is not finite. */
static void spoil(struct trained *t, enum spoilt what, double value)
{
	const struct wlb_layer_tensors *layer = &t->parameters->chunks[0].tensors[0];
	int is_last = wlb_comm_rank(world) == wlb_comm_size(world) - 1;
	int norm = layer->post_norm >= 0 ? layer->post_norm : layer->mlp_norm;
	wlb_optimizer_begin(t->optimizer);
	if (is_last && what != SPOILT_LOSS)
		*(double *)wlb_gradient_to_add(t->parameters, what == SPOILT_NORM ? norm : layer->v) = value;
	update(t, 2, 0.01, is_last && what == SPOILT_LOSS ? value : 1.0);
	int loss_is_finite = isfinite(t->sums[WLB_SUM_LOSS]), norm_is_finite = isfinite(t->sums[WLB_SUM_SQUARES]);
	assert_true(everywhere(t->sums[WLB_CLIP_FACTOR] == 0.0));
	assert_true(everywhere(loss_is_finite == (what != SPOILT_LOSS) && norm_is_finite == (what == SPOILT_LOSS)));
}

static void check_not_finite(const struct part_case *c)
{
	struct trained t = trained_open(world, &c->layout, c, 5.0);
	struct trained whole = trained_open(alone, &one_rank.layout, c, 5.0);
	assert_true(everywhere(steps_agree(&t, &whole, c, 1)));
	spoil(&t, SPOILT_MATRIX, NAN);
	spoil(&t, SPOILT_NORM, INFINITY);
	spoil(&t, SPOILT_LOSS, INFINITY);
	spoil(&t, SPOILT_LOSS, NAN);
	/* Weights and moments are as before: the next step gives what it would have given. */
	assert_true(everywhere(like_whole(t.parameters, whole.parameters, 0)));
	assert_true(everywhere(steps_agree(&t, &whole, c, 2)));
	trained_close(&whole);
	trained_close(&t);
}

static void what_is_not_finite_changes_nothing(void **state)
{
	for_each_case(check_not_finite);
	(void)state;
}

/* Returns the elements of the tensor in this rank's part of its bucket; empty where there are none. */
static struct wlb_element_range own_elements(const struct trained *t, const struct wlb_tensor *tensor)
{
	const struct wlb_bucket *bucket = &t->parameters->buckets[tensor->bucket];
	int64_t elements = (int64_t)bucket->elements / t->parameters->shards;
	int64_t begin = (int64_t)bucket->offset + wlb_comm_rank(t->groups->data) * elements - (int64_t)tensor->offset;
	int64_t end = begin + elements, all = wlb_tensor_block_elements(&tensor->block);
	struct wlb_element_range own = {begin > 0 ? begin : 0, end < all ? end : all};
	return own.begin < own.end ? own : (struct wlb_element_range){0, 0};
}

/* Returns that state of all elements, laid out as the weights. The caller frees. */
static double *gather_all(struct trained *t, enum wlb_state state)
{
	struct wlb_error error = {0};
	const struct wlb_parameters *p = t->parameters;
	double *all = calloc(p->elements, sizeof(*all));
	assert_non_null(all);
	for (int i = 0; i < p->count; i++) {
		const struct wlb_element_range own = own_elements(t, &p->tensors[i]);
		assert_int_equal(wlb_optimizer_fetch(t->optimizer, NULL, state, i, own,
		                                     all + p->tensors[i].offset + own.begin, &error),
		                 0);
	}
	assert_int_equal(device->ops->synchronize(device, &error), 0);
	assert_int_equal(wlb_comm_all_reduce(t->groups->data, all, p->elements, WLB_FLOAT64, WLB_SUM, &error), 0);
	return all;
}

/* Gathers that state; whether it is that of one rank. */
static int gather_both(struct trained *t, struct trained *whole, enum wlb_state state, double **out)
{
	double *expected = gather_all(whole, state);
	*out = gather_all(t, state);
	memcpy(t->parameters->gradients, *out, t->parameters->elements * sizeof(double));
	memcpy(whole->parameters->gradients, expected, whole->parameters->elements * sizeof(double));
	free(expected);
	return like_whole(t->parameters, whole->parameters, 1);
}

/* Stores the rows that have an element of this rank's parts, one after the other; the others are unknown to it. */
static void store_own(struct trained *t, enum wlb_state state, const double *all)
{
	struct wlb_error error = {0};
	const struct wlb_parameters *p = t->parameters;
	for (int i = 0; i < p->count; i++) {
		const struct wlb_tensor *tensor = &p->tensors[i];
		const struct wlb_bucket *bucket = &p->buckets[tensor->bucket];
		size_t elements = bucket->elements / (size_t)p->shards;
		size_t part = bucket->offset + (size_t)wlb_comm_rank(t->groups->data) * elements;
		for (int64_t row = 0; row < tensor->block.rows; row++) {
			size_t first = tensor->offset + (size_t)(row * tensor->block.cols);
			if (first < part + elements && part < first + (size_t)tensor->block.cols)
				assert_int_equal(wlb_optimizer_store_range(
							 t->optimizer, state, i,
							 (struct wlb_element_range){row * tensor->block.cols,
				                                                    (row + 1) * tensor->block.cols},
							 all + first, &error),
				                 0);
		}
	}
}

/* A new optimizer that goes on with the weights and moments of the old one. */
static void check_states(const struct part_case *c)
{
	struct wlb_error error = {0};
	struct trained t = trained_open(world, &c->layout, c, 5.0);
	struct trained whole = trained_open(alone, &one_rank.layout, c, 5.0);
	double *states[WLB_STATES];
	for (int64_t step = 1; step <= 2; step++)
		assert_true(everywhere(steps_agree(&t, &whole, c, step)));
	for (enum wlb_state state = 0; state < WLB_STATES; state++)
		assert_true(everywhere(gather_both(&t, &whole, state, &states[state])));
	trained_close(&t);
	t = trained_open(world, &c->layout, c, 5.0);
	for (enum wlb_state state = 0; state < WLB_STATES; state++)
		store_own(&t, state, states[state]);
	assert_int_equal(wlb_optimizer_share_weights(t.optimizer, &error), 0);
	assert_memory_equal(t.parameters->weights, states[WLB_STATE_MASTERS], t.parameters->elements * sizeof(double));
	for (enum wlb_state state = 0; state < WLB_STATES; state++)
		free(states[state]);
	assert_true(everywhere(steps_agree(&t, &whole, c, 3)));
	trained_close(&whole);
	trained_close(&t);
}

static void weights_and_moments_survive_a_checkpoint(void **state)
{
	for_each_case(check_states);
	(void)state;
}

/* How many buckets are complete once a layer is done. */
static int complete(const struct wlb_parameters *p, int chunk, int layer)
{
	int count = 0;
	for (int b = 0; b < p->bucket_count; b++)
		count += p->buckets[b].chunk > chunk || (p->buckets[b].chunk == chunk && p->buckets[b].layer >= layer);
	return count;
}

static void check_start(const struct part_case *c)
{
	struct wlb_error error = {0};
	struct trained t = trained_open(world, &c->layout, c, 0.0);
	const struct wlb_parameters *p = t.parameters;
	struct wlb_reduction r;
	int as_expected = 1;
	assert_int_equal(wlb_reduction_open(&r, p, t.groups, &error), 0);
	for (int round = 0; round < 2; round++) {
		for (int chunk = p->chunk_count - 1; chunk >= 0; chunk--)
			for (int layer = p->chunks[chunk].layers; layer >= -1; layer--) {
				assert_int_equal(wlb_reduction_start(&r, chunk, layer, &error), 0);
				as_expected &= r.next == complete(p, chunk, layer);
				as_expected &= p->shards == 1 || r.next == 0 || r.requests[r.next - 1] != NULL;
			}
		as_expected &= r.next == p->bucket_count;
		assert_int_equal(wlb_reduction_finish(&r, &error), 0);
	}
	wlb_reduction_close(&r);
	assert_true(everywhere(as_expected));
	trained_close(&t);
}

/* With ZeRO stage 2, in a pass that others follow: buckets that pass are reduced, and no other. */
static void check_first_of_two_passes(const struct part_case *c)
{
	if (c->layout.pp > 1 || c->layout.dp * c->layout.cp == 1)
		return;
	struct wlb_error error = {0};
	struct trained t = staged_open(world, &c->layout, c, 0.0, 2, 2);
	const struct wlb_parameters *p = t.parameters;
	struct wlb_reduction r;
	int as_expected = 1;
	assert_int_equal(wlb_reduction_open(&r, p, t.groups, &error), 0);
	assert_int_equal(wlb_reduction_begin_pass(&r, 0, &error), 0);
	assert_int_equal(wlb_reduction_start(&r, 0, -1, &error), 0);
	for (int b = 0; b < p->bucket_count; b++)
		as_expected &= (r.has_sums[b] || r.requests[b] != NULL) == p->buckets[b].is_passing;
	assert_int_equal(wlb_reduction_begin_pass(&r, 1, &error), 0);
	assert_int_equal(wlb_reduction_finish(&r, &error), 0);
	wlb_reduction_close(&r);
	assert_true(everywhere(as_expected));
	trained_close(&t);
}

static void reductions_start_as_buckets_become_complete(void **state)
{
	for_each_case(check_start);
	for_each_case(check_first_of_two_passes);
	(void)state;
}

/* ---- masters of another type ---- */

static const struct wlb_ops *plain_ops;

static void join_masters(float *masters, const void *param, const void *lower, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		masters[i] = wlb_join_master(
			(struct wlb_halves){((const uint16_t *)param)[i], ((const uint16_t *)lower)[i]});
}

/* The CPU device's update of the masters, which are then in halves again. */
static void adamw_of_halves(struct wlb_device *mixed, void *param, void *lower, const void *grad, void *m, void *v,
                            int64_t n, const struct wlb_adamw *settings, const double *factor)
{
	float *masters = malloc((size_t)n * sizeof(*masters) + 1);
	assert_non_null(masters);
	join_masters(masters, param, lower, n);
	plain_ops->adamw(mixed, masters, masters, grad, m, v, n, settings, factor);
	for (int64_t i = 0; i < n; i++) {
		const struct wlb_halves halves = wlb_split_master(masters[i]);
		((uint16_t *)param)[i] = halves.weight;
		((uint16_t *)lower)[i] = halves.lower;
	}
	free(masters);
}

/* The wlb_tensor_store of initial weights. */
static int store_masters(void *optimizer, int tensor, const void *values_host, struct wlb_error *error)
{
	return wlb_optimizer_store(optimizer, WLB_STATE_MASTERS, tensor, values_host, error);
}

static void step_of_floats(struct trained *t, int64_t step)
{
	const struct wlb_parameters *p = t->parameters;
	wlb_optimizer_begin(t->optimizer);
	for (int i = 0; i < p->count; i++)
		for (int64_t k = 0; k < wlb_tensor_block_elements(&p->tensors[i].block); k++)
			((float *)wlb_gradient_to_add(p, i))[k] = (float)contribution(step, p->tensors[i].name, k, 0);
	update(t, step, 0.01, 1.0);
}

static int is_same_state(struct trained *mixed, struct trained *plain, enum wlb_state state, int tensor)
{
	struct wlb_error error = {0};
	const struct wlb_parameters *p = mixed->parameters;
	const struct wlb_element_range own = own_elements(mixed, &p->tensors[tensor]);
	size_t count = (size_t)(own.end - own.begin);
	const uint16_t *weights = (const uint16_t *)p->weights + p->tensors[tensor].offset + own.begin;
	float *kept = malloc(2 * count * sizeof(*kept) + 1), *expected = kept + count;
	assert_non_null(kept);
	assert_int_equal(wlb_optimizer_fetch(mixed->optimizer, NULL, state, tensor, own, kept, &error), 0);
	assert_int_equal(wlb_optimizer_fetch(plain->optimizer, NULL, state, tensor, own, expected, &error), 0);
	if (state == WLB_STATE_MASTERS)
		assert_int_equal(wlb_optimizer_join(kept, count, &error), 0);
	int same = memcmp(kept, expected, count * sizeof(float)) == 0;
	for (size_t i = 0; state == WLB_STATE_MASTERS && i < count; i++)
		same &= weights[i] == wlb_split_master(kept[i]).weight;
	free(kept);
	return same;
}

/* Whether each tensor of a state has the same bits in both, and the weights in use of `mixed` are its masters, rounded.
 */
static int same_states(struct trained *mixed, struct trained *plain)
{
	const struct wlb_parameters *p = mixed->parameters;
	int same = 1;
	for (enum wlb_state state = 0; state < WLB_STATES; state++)
		for (int i = 0; i < p->count; i++)
			same &= is_same_state(mixed, plain, state, i);
	return same;
}

/* Masters that are half way between two weights. */
static void store_ties(struct trained *t)
{
	struct wlb_error error = {0};
	for (int i = 0; i < t->parameters->count; i++) {
		int64_t elements = wlb_tensor_block_elements(&t->parameters->tensors[i].block);
		uint32_t *bits = malloc((size_t)elements * sizeof(*bits) + 1);
		assert_non_null(bits);
		for (int64_t k = 0; k < elements; k++)
			bits[k] = 0x3f808000 + (uint32_t)(k << 16);
		assert_int_equal(store_masters(t->optimizer, i, bits, &error), 0);
		free(bits);
	}
}

/* With the gradients of float32 weights, masters and moments are those of a float32 device to the last bit. */
static void check_masters(const struct part_case *c)
{
	struct wlb_error error = {0};
	struct wlb_device *doubles = device, *floats = wlb_device_open_cpu(WLB_FLOAT32, 1, &error);
	struct wlb_device *halves = wlb_device_open_cpu(WLB_FLOAT32, 1, &error);
	assert_true(floats != NULL && halves != NULL);
	plain_ops = halves->ops;
	struct wlb_ops ops = *plain_ops;
	ops.adamw = adamw_of_halves;
	halves->ops = &ops;
	halves->compute = WLB_BFLOAT16;
	device = floats;
	struct trained plain = trained_open(world, &c->layout, c, 5.0);
	device = halves;
	struct trained mixed = trained_open(world, &c->layout, c, 5.0);
	assert_int_equal(wlb_parameters_init(mixed.parameters, 5, 0.5, store_masters, mixed.optimizer, &error), 0);
	for (int64_t step = 1; step <= 3; step++) {
		assert_true(everywhere(same_states(&mixed, &plain)));
		step_of_floats(&plain, step);
		step_of_floats(&mixed, step);
	}
	assert_true(everywhere(same_states(&mixed, &plain)));
	store_ties(&plain);
	store_ties(&mixed);
	assert_true(everywhere(same_states(&mixed, &plain)));
	trained_close(&mixed);
	trained_close(&plain);
	wlb_device_close(halves);
	wlb_device_close(floats);
	device = doubles;
}

static void masters_are_updated_and_weights_are_rounded(void **state)
{
	for_each_case(check_masters);
	(void)state;
}

int main(void)
{
	struct wlb_error error = {0};
	int code = 0;
	struct wlb_launch *launch = wlb_launch_open(&code, &error);
	device = launch != NULL ? wlb_device_open_cpu(WLB_FLOAT64, 1, &error) : NULL;
	world = device != NULL ? wlb_comm_open_world(device, launch->rank, launch->size, &error) : NULL;
	alone = world != NULL ? wlb_comm_open_world(device, 0, 1, &error) : NULL;
	if (alone == NULL) {
		fprintf(stderr, "%s\n", error.message);
		return 1;
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_updates_by_hand),
		cmocka_unit_test(matrices_alone_decay),
		cmocka_unit_test(a_copy_waits_for_the_updates),
		cmocka_unit_test(clipping_scales_what_is_too_long),
		cmocka_unit_test(learning_rate_warms_up_and_decays),
		cmocka_unit_test(a_layout_updates_as_one_rank),
		cmocka_unit_test(zero_2_updates_as_zero_1),
		cmocka_unit_test(what_is_not_finite_changes_nothing),
		cmocka_unit_test(weights_and_moments_survive_a_checkpoint),
		cmocka_unit_test(reductions_start_as_buckets_become_complete),
		cmocka_unit_test(masters_are_updated_and_weights_are_rounded),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	wlb_launch_close(launch); /* before MPI, see launch.h */
	wlb_comm_close(alone);
	wlb_comm_close(world);
	wlb_device_close(device);
	return failed;
}
