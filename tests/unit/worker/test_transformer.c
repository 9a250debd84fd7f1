/* The whole model on one rank: against a slow reference, against finite differences, packed in different ways, computed
 * again in different ways, and cut into stages. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/worker/reference.h"
#include "tests/unit/worker/tiny.h"
#include "worker/model/activations.h"

/* What cannot be allocated is an error here, not the end of the test. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static void assert_close(double value, double expected, double tolerance, const char *what)
{
	if (!(tiny_difference(value, expected) <= tolerance))
		fail_msg("%s: %.17g, expected %.17g", what, value, expected);
}

static double reference_of(const struct tiny *tiny)
{
	double sum = 0.0;
	for (int d = 0; d < 3; d++)
		sum += reference_loss(tiny->parameters, tiny_documents[d].tokens, tiny_documents[d].length);
	return sum;
}

static void *copy_gradients(const struct wlb_parameters *p)
{
	size_t bytes = p->elements * sizeof(double);
	void *copy = malloc(bytes);
	assert_non_null(copy);
	return memcpy(copy, p->gradients, bytes);
}

static void loss_equals_reference(void **state)
{
	for (int tied = 0; tied <= 1; tied++) {
		struct tiny tiny = tiny_open(&(struct tiny_setup){.tied = tied});
		double loss = tiny_pass_documents(&tiny, tiny_documents, 3, 1.0);
		assert_close(loss, reference_of(&tiny), 1e-13, "loss");
		tiny_close(&tiny);
	}
	(void)state;
}

static void logits_give_the_same_loss(void **state)
{
	struct tiny tiny = tiny_open(&(struct tiny_setup){.tied = 0});
	struct tiny_batch b = tiny_batch_new(tiny.device, tiny_documents, 3, WLB_SHARDING_SEQUENCE, 1, 1, 0);
	double logits[TINY_TOKENS][TINY_VOCAB], loss = 0.0;
	struct wlb_error error = {0};
	int row = 0;
	assert_int_equal(wlb_logits(tiny.transformer, &b.batch, logits, &error), 0);
	for (int d = 0; d < 3; d++)
		for (int i = 0; i < tiny_documents[d].length; i++, row++) {
			double total = 0.0;
			for (int v = 0; v < TINY_VOCAB; v++)
				total += exp(logits[row][v]);
			loss += log(total) - logits[row][tiny_documents[d].tokens[i + 1]];
		}
	assert_close(loss, reference_of(&tiny), 1e-13, "loss");
	tiny_batch_free(&b);
	tiny_close(&tiny);
	(void)state;
}

/* The loss has the same bits, whatever the number of parts; gradients are sums in another order. */
static void parts_of_the_logits_change_no_loss(void **state)
{
	struct tiny whole = tiny_open(&(struct tiny_setup){.tied = 0});
	double expected = tiny_pass_documents(&whole, tiny_documents, 3, 0.5);
	struct tiny_batch b = tiny_batch_new(whole.device, tiny_documents, 3, WLB_SHARDING_SEQUENCE, 1, 1, 0);
	double all[TINY_TOKENS][TINY_VOCAB], parts[TINY_TOKENS][TINY_VOCAB];
	struct wlb_error error = {0};
	assert_int_equal(whole.transformer->logit_rows, TINY_TOKENS);
	assert_int_equal(wlb_logits(whole.transformer, &b.batch, all, &error), 0);
	for (int rows = 1; rows < TINY_TOKENS; rows += 3) {
		struct tiny tiny = tiny_open(&(struct tiny_setup){.tied = 0});
		tiny.transformer->logit_rows = rows;
		double loss = tiny_pass_documents(&tiny, tiny_documents, 3, 0.5);
		assert_memory_equal(&loss, &expected, sizeof(loss));
		const double *gradients = tiny.parameters->gradients, *expect = whole.parameters->gradients;
		for (size_t i = 0; i < tiny.parameters->elements; i++)
			assert_close(gradients[i], expect[i], 1e-12, "gradient");
		assert_int_equal(wlb_logits(tiny.transformer, &b.batch, parts, &error), 0);
		for (int i = 0; i < TINY_TOKENS; i++)
			for (int v = 0; v < TINY_VOCAB; v++)
				assert_close(parts[i][v], all[i][v], 1e-13, "logit");
		tiny_close(&tiny);
	}
	tiny_batch_free(&b);
	tiny_close(&whole);
	(void)state;
}

/* Without pipeline and replicas the memory model has no buffers that the transformer does not allocate. */
static void check_memory(enum wlb_family family, enum wlb_recompute kind)
{
	enum { ROWS = 4096 };
	const struct tiny_setup setup = {.family = family, .layers = 5, .recompute = kind, .max_tokens = ROWS};
	struct tiny tiny = tiny_open(&setup);
	const struct wlb_plan plan = {.layout = {1, 1, 1, 1}, .interleave = 1, .micro_batches = 4, .recompute = kind};
	const struct wlb_machine machine = {.element_bytes = 8};
	struct wlb_cost_options worker;
	wlb_cost_options_worker(&worker, &machine);
	struct wlb_memory m = wlb_memory_stage_of(&plan, &tiny.parameters->shape, &machine, &worker, 0, ROWS, ROWS);
	double predicted = m.activations + m.logits + m.buffers, bytes = (double)tiny.transformer->bytes;
	assert_close(predicted / bytes, 1.0, 1e-6, "predicted beside allocated bytes");
	tiny_close(&tiny);
}

static void memory_is_what_the_model_of_it_says(void **state)
{
	static const enum wlb_recompute kinds[] = {WLB_RECOMPUTE_NONE, WLB_RECOMPUTE_SELECTIVE, WLB_RECOMPUTE_FULL};
	for (int family = 0; family < WLB_FAMILIES; family++)
		for (int i = 0; i < 3 && wlb_family((enum wlb_family)family)->not_trained == NULL; i++)
			check_memory((enum wlb_family)family, kinds[i]);
	(void)state;
}

static double loss_at(struct tiny *tiny, const struct wlb_micro_batch *batch, double *w, double value)
{
	double saved = *w;
	*w = value;
	double loss = tiny_pass(tiny, batch, 1.0);
	*w = saved;
	return loss;
}

/* Central differences of fourth order. */
static double slope(struct tiny *tiny, const struct wlb_micro_batch *batch, double *w)
{
	const double h = 2e-4;
	double near = loss_at(tiny, batch, w, *w + h) - loss_at(tiny, batch, w, *w - h);
	double far = loss_at(tiny, batch, w, *w + 2.0 * h) - loss_at(tiny, batch, w, *w - 2.0 * h);
	return (8.0 * near - far) / (12.0 * h);
}

/* Every parameter; the gradient of the mean loss, as training takes it. */
static void check_gradients(int tied, enum wlb_family family)
{
	const double scale = 1.0 / 13.0;
	struct tiny tiny = tiny_open(&(struct tiny_setup){.tied = tied, .family = family});
	struct wlb_parameters *p = tiny.parameters;
	struct tiny_batch b = tiny_batch_new(tiny.device, tiny_documents, 3, WLB_SHARDING_SEQUENCE, 1, 1, 0);
	tiny_pass(&tiny, &b.batch, scale);
	double *gradients = copy_gradients(p);
	for (int i = 0; i < p->count; i++) {
		double *w = wlb_weight(p, i);
		const double *gradient = gradients + p->tensors[i].offset;
		for (int64_t e = 0; e < p->tensors[i].block.rows * p->tensors[i].block.cols; e++)
			assert_close(gradient[e], scale * slope(&tiny, &b.batch, &w[e]), 1e-9, p->tensors[i].name);
	}
	free(gradients);
	tiny_batch_free(&b);
	tiny_close(&tiny);
}

static void gradients_equal_finite_differences(void **state)
{
	(void)state;
	check_gradients(0, WLB_FAMILY_LLAMA);
}

static void gradients_of_tied_embeddings(void **state)
{
	(void)state;
	check_gradients(1, WLB_FAMILY_LLAMA);
}

/* Norms on both sides, GELU, soft caps, a scaled embedding, angles of two kinds. */
static void gradients_of_gemma(void **state)
{
	(void)state;
	check_gradients(1, WLB_FAMILY_GEMMA2);
	check_gradients(1, WLB_FAMILY_GEMMA3);
}

/* Documents in one micro-batch, each in its own, and in another order: the same loss, the same gradients. */
static void packing_changes_nothing(void **state)
{
	struct tiny tiny = tiny_open(&(struct tiny_setup){.tied = 0});
	struct wlb_parameters *p = tiny.parameters;
	size_t bytes = p->elements * sizeof(double);
	double together = tiny_pass_documents(&tiny, tiny_documents, 3, 0.1), apart = 0.0;
	double *gradients = copy_gradients(p);

	memset(p->gradients, 0, bytes);
	for (int d = 2; d >= 0; d--)
		apart += tiny_pass_documents(&tiny, &tiny_documents[d], 1, 0.1);
	assert_close(apart, together, 1e-13, "loss apart");
	for (size_t e = 0; e < p->elements; e++)
		assert_close(((double *)p->gradients)[e], gradients[e], 1e-12, "gradient apart");

	struct tiny_document turned[3] = {tiny_documents[2], tiny_documents[0], tiny_documents[1]};
	memset(p->gradients, 0, bytes);
	assert_close(tiny_pass_documents(&tiny, turned, 3, 0.1), together, 1e-13, "loss turned");
	for (size_t e = 0; e < p->elements; e++)
		assert_close(((double *)p->gradients)[e], gradients[e], 1e-12, "gradient turned");
	free(gradients);
	tiny_close(&tiny);
	(void)state;
}

/* One document changed: no bit of what the others' tokens give changes. */
static void documents_do_not_see_each_other(void **state)
{
	struct tiny tiny = tiny_open(&(struct tiny_setup){.tied = 0});
	struct tiny_document documents[3] = {tiny_documents[0], tiny_documents[1], tiny_documents[2]};
	double before[TINY_TOKENS][TINY_VOCAB], after[TINY_TOKENS][TINY_VOCAB];
	struct wlb_error error = {0};
	for (int turn = 0; turn < 2; turn++) {
		struct tiny_batch b = tiny_batch_new(tiny.device, documents, 3, WLB_SHARDING_SEQUENCE, 1, 1, 0);
		assert_int_equal(wlb_logits(tiny.transformer, &b.batch, turn == 0 ? before : after, &error), 0);
		tiny_batch_free(&b);
		documents[1].tokens[0] = 7;
	}
	assert_memory_equal(before, after, 5 * sizeof(before[0]));
	assert_true(memcmp(before[5], after[5], sizeof(before[5])) != 0);
	assert_memory_equal(before[6], after[6], 7 * sizeof(before[0]));
	tiny_close(&tiny);
	(void)state;
}

/* Rows that hold no token: no uninitialized value remains in them. */
static void padding_gives_zeros(void **state)
{
	enum { ROWS = 16 };
	struct tiny tiny = tiny_open(&(struct tiny_setup){.max_tokens = ROWS});
	struct tiny_batch b = tiny_batch_new(tiny.device, tiny_documents, 3, WLB_SHARDING_SEQUENCE, 4, 1, 0);
	const struct wlb_layer_activations *a = tiny.transformer->layers;
	assert_int_equal(b.batch.rows, ROWS);
	double loss = tiny_pass(&tiny, &b.batch, 1.0);
	assert_close(loss, reference_of(&tiny), 1e-13, "loss");
	for (int i = TINY_TOKENS * tiny.parameters->heads; i < ROWS * tiny.parameters->heads; i++)
		assert_true(((double *)a->lse)[i] == 0.0);
	for (int i = TINY_TOKENS * 16; i < ROWS * 16; i++)
		assert_true(((double *)a->attention)[i] == 0.0);
	tiny_batch_free(&b);
	tiny_close(&tiny);
	(void)state;
}

static void recomputed_to_the_bit(void **state)
{
	enum { LAYERS = 4, WAYS = LAYERS + 2 };
	static const enum wlb_recompute modes[] = {WLB_RECOMPUTE_NONE, WLB_RECOMPUTE_SELECTIVE, WLB_RECOMPUTE_FULL};
	double losses[WAYS];
	double *gradients[WAYS];
	size_t bytes = 0, held[WAYS];
	for (int way = 0; way < WAYS; way++) { /* nothing; SELECTIVE; FULL of 1 to 4 layers */
		struct tiny tiny = tiny_open(&(struct tiny_setup){.layers = LAYERS,
		                                                  .recompute = modes[way < 2 ? way : 2],
		                                                  .recompute_layers = way < 2 ? 0 : way - 1});
		bytes = tiny.parameters->elements * sizeof(double);
		held[way] = tiny.transformer->bytes;
		losses[way] = tiny_pass_documents(&tiny, tiny_documents, 3, 0.1);
		gradients[way] = copy_gradients(tiny.parameters);
		tiny_close(&tiny);
	}
	for (int way = 1; way < WAYS; way++) {
		assert_memory_equal(&losses[way], &losses[0], sizeof(double));
		assert_memory_equal(gradients[way], gradients[0], bytes);
		assert_true(held[way] < held[0]);
		if (way > 2)
			assert_true(held[way] < held[way - 1]);
		free(gradients[way]);
	}
	free(gradients[0]);
	(void)state;
}

/* ---- stages ------------------------------------------------------------------------------ */

enum { STAGES = 2, BATCHES = 2, PLACES_MOST = 4 };

/* Place k of the model is chunk k / STAGES of stage k % STAGES. */
struct pipeline {
	struct tiny stages[STAGES];
	int places;
};

static struct wlb_slot *slot_of(struct pipeline *line, int place, int micro_batch)
{
	return wlb_transformer_slot(line->stages[place % STAGES].transformer, place / STAGES * BATCHES + micro_batch);
}

static void send(struct pipeline *line, void *to, const void *from, const struct wlb_micro_batch *batch)
{
	memcpy(to, from, (size_t)(batch->rows * line->stages[0].parameters->shape.hidden_size) * sizeof(double));
}

static double forward_through(struct pipeline *line, int micro_batch, const struct wlb_micro_batch *batch)
{
	struct wlb_error error = {0};
	struct tiny *last = &line->stages[STAGES - 1];
	for (int k = 0; k < line->places; k++) {
		struct wlb_slot *slot = slot_of(line, k, micro_batch);
		if (k > 0)
			send(line, slot->input, slot_of(line, k - 1, micro_batch)->output, batch);
		assert_int_equal(wlb_forward(line->stages[k % STAGES].transformer, k / STAGES, slot, batch, &error), 0);
	}
	*last->loss_sum = 0.0;
	assert_int_equal(wlb_head_loss(last->transformer, (line->places - 1) / STAGES,
	                               slot_of(line, line->places - 1, micro_batch), batch, last->loss_sum, 0.1, NULL,
	                               &error),
	                 0);
	return *last->loss_sum;
}

static void backward_through(struct pipeline *line, int micro_batch, const struct wlb_micro_batch *batch)
{
	struct wlb_error error = {0};
	for (int k = line->places - 1; k >= 0; k--) {
		struct wlb_slot *slot = slot_of(line, k, micro_batch);
		assert_int_equal(
			wlb_backward(line->stages[k % STAGES].transformer, k / STAGES, slot, batch, NULL, &error), 0);
		if (k > 0)
			send(line, slot_of(line, k - 1, micro_batch)->output, slot->output, batch);
	}
}

/* Each tensor's gradient, summed over the stages that hold it, against that of the whole model. */
static void compare_stages(struct pipeline *line, const struct wlb_parameters *whole)
{
	for (int i = 0; i < whole->count; i++) {
		const struct wlb_tensor *tensor = &whole->tensors[i];
		const double *expected = wlb_gradient(whole, i);
		for (int64_t e = 0; e < tensor->block.rows * tensor->block.cols; e++) {
			double sum = 0.0;
			for (int s = 0; s < STAGES; s++) {
				int own = tiny_tensor(line->stages[s].parameters, tensor->name);
				if (own >= 0)
					sum += ((double *)wlb_gradient(line->stages[s].parameters, own))[e];
			}
			assert_close(sum, expected[e], 1e-14, tensor->name);
		}
	}
}

static void check_stages(int tied, int interleave, enum wlb_recompute recompute, int recompute_layers)
{
	struct pipeline line = {.places = STAGES * interleave};
	struct tiny whole = tiny_open(&(struct tiny_setup){.tied = tied, .layers = 5});
	struct tiny_batch batches[BATCHES];
	double losses[BATCHES];
	for (int s = 0; s < STAGES; s++)
		line.stages[s] = tiny_open(&(struct tiny_setup){.tied = tied,
		                                                .layers = 5,
		                                                .pp = STAGES,
		                                                .stage = s,
		                                                .interleave = interleave,
		                                                .recompute = recompute,
		                                                .recompute_layers = recompute_layers,
		                                                .slots = interleave * BATCHES});
	for (int b = 0; b < BATCHES; b++)
		batches[b] = tiny_batch_new(whole.device, tiny_documents + b, 2, WLB_SHARDING_SEQUENCE, 1, 1, 0);
	/* Both are in progress at once: neither may change the data of the other. */
	for (int b = 0; b < BATCHES; b++)
		losses[b] = forward_through(&line, b, &batches[b].batch);
	for (int b = 0; b < BATCHES; b++) {
		backward_through(&line, b, &batches[b].batch);
		assert_close(losses[b], tiny_pass(&whole, &batches[b].batch, 0.1), 1e-14, "loss");
		tiny_batch_free(&batches[b]);
	}
	compare_stages(&line, whole.parameters);
	for (int s = 0; s < STAGES; s++)
		tiny_close(&line.stages[s]);
	tiny_close(&whole);
}

static void stages_give_what_the_whole_gives(void **state)
{
	(void)state;
	for (int mode = WLB_RECOMPUTE_NONE; mode <= WLB_RECOMPUTE_FULL; mode++)
		for (int tied = 0; tied <= 1; tied++)
			for (int interleave = 1; interleave <= 2; interleave++)
				for (int layers = 0; layers <= (mode == WLB_RECOMPUTE_FULL ? 1 : 0); layers++)
					check_stages(tied, interleave, mode, layers);
}

/* ---- the watch --------------------------------------------------------------------------- */

struct seen {
	int layers[8];
	int count;
	int fail_at; /* this call fails; -1 none */
};

static int note(void *context, int chunk, int layer, struct wlb_error *error)
{
	struct seen *seen = context;
	assert_int_equal(chunk, 0);
	if (seen->count == seen->fail_at)
		return wlb_fail(error, "enough");
	seen->layers[seen->count++] = layer;
	return 0;
}

static int watched_pass(struct tiny *tiny, struct seen *seen, struct wlb_error *error)
{
	struct tiny_batch b = tiny_batch_new(tiny->device, tiny_documents, 3, WLB_SHARDING_SEQUENCE, 1, 1, 0);
	struct wlb_backward_watch watch = {note, seen};
	struct wlb_slot *slot = wlb_transformer_slot(tiny->transformer, 0);
	assert_int_equal(wlb_forward(tiny->transformer, 0, slot, &b.batch, error), 0);
	int rc = wlb_head_loss(tiny->transformer, 0, slot, &b.batch, tiny->loss_sum, 1.0, &watch, error);
	if (rc == 0)
		rc = wlb_backward(tiny->transformer, 0, slot, &b.batch, &watch, error);
	tiny_batch_free(&b);
	return rc;
}

static void layers_are_told_from_the_head_down(void **state)
{
	struct tiny tiny = tiny_open(&(struct tiny_setup){.tied = 0});
	struct seen seen = {.fail_at = -1};
	struct wlb_error error = {0};
	const int expected[] = {2, 1, 0, -1};
	assert_int_equal(watched_pass(&tiny, &seen, &error), 0);
	assert_int_equal(seen.count, 4);
	assert_memory_equal(seen.layers, expected, sizeof(expected));
	for (int at = 0; at < 4; at++) {
		seen = (struct seen){.fail_at = at};
		assert_int_equal(watched_pass(&tiny, &seen, &error), -1);
		assert_string_equal(error.message, "enough");
	}
	tiny_close(&tiny);
	(void)state;
}

/* ---- refusals ---------------------------------------------------------------------------- */

static void memory_that_is_not_there_is_named(void **state)
{
	struct tiny tiny = tiny_open(&(struct tiny_setup){.tied = 0});
	struct wlb_error error = {0};
	const struct wlb_plan split = {.layout = {1, 1, 1, 1}, .interleave = 1};
	int64_t rows = INT64_C(1) << 48;
	assert_null(wlb_transformer_new(tiny.parameters, tiny.groups, &split, 3, 4, rows, rows, &error));
	assert_non_null(
		strstr(error.message, "activations of 3 micro-batches of up to 281474976710656 rows: cannot allocate"));
	assert_true(tiny.parameters->device->no_memory.asked_bytes > 0);
	tiny_close(&tiny);
	(void)state;
}

/* Of two slots only one has activations of layers at a time. */
static void forward_passes_wait_for_backward_passes(void **state)
{
	struct tiny tiny = tiny_open(&(struct tiny_setup){.tied = 0});
	struct tiny_batch b = tiny_batch_new(tiny.device, tiny_documents, 3, WLB_SHARDING_SEQUENCE, 1, 1, 0);
	const struct wlb_plan split = {.layout = {1, 1, 1, 1}, .interleave = 1};
	struct wlb_error error = {0};
	struct wlb_transformer *t =
		wlb_transformer_new(tiny.parameters, tiny.groups, &split, 1, 2, TINY_TOKENS, TINY_TOKENS, &error);
	struct wlb_slot *first = wlb_transformer_slot(t, 0), *second = wlb_transformer_slot(t, 1);
	assert_int_equal(wlb_forward(t, 0, first, &b.batch, &error), 0);
	assert_int_equal(wlb_forward(t, 0, first, &b.batch, &error), 0);
	assert_int_equal(wlb_forward(t, 0, second, &b.batch, &error), -1);
	assert_string_equal(error.message,
	                    "a forward pass while 1 micro-batches, the most, wait for their backward pass");
	assert_int_equal(wlb_backward(t, 0, first, &b.batch, NULL, &error), 0);
	assert_int_equal(wlb_forward(t, 0, second, &b.batch, &error), 0);
	wlb_transformer_free(t);
	tiny_batch_free(&b);
	tiny_close(&tiny);
	(void)state;
}

static void device_without_an_operation_is_refused(void **state)
{
	struct tiny tiny = tiny_open(&(struct tiny_setup){.tied = 0});
	struct wlb_error error = {0};
	struct wlb_ops ops = *tiny.device->ops;
	struct wlb_device lacking = *tiny.device;
	lacking.ops = &ops;
	assert_int_equal(wlb_transformer_check_device(&lacking, &error), 0);
	ops.gather_rows = NULL;
	assert_int_equal(wlb_transformer_check_device(&lacking, &error), -1);
	assert_string_equal(error.message, "device cpu cannot train yet: it has no gather_rows in this version; use "
	                                   "--device cpu");
	tiny_close(&tiny);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loss_equals_reference),
		cmocka_unit_test(logits_give_the_same_loss),
		cmocka_unit_test(parts_of_the_logits_change_no_loss),
		cmocka_unit_test(memory_is_what_the_model_of_it_says),
		cmocka_unit_test(gradients_equal_finite_differences),
		cmocka_unit_test(gradients_of_tied_embeddings),
		cmocka_unit_test(gradients_of_gemma),
		cmocka_unit_test(packing_changes_nothing),
		cmocka_unit_test(documents_do_not_see_each_other),
		cmocka_unit_test(padding_gives_zeros),
		cmocka_unit_test(recomputed_to_the_bit),
		cmocka_unit_test(stages_give_what_the_whole_gives),
		cmocka_unit_test(layers_are_told_from_the_head_down),
		cmocka_unit_test(memory_that_is_not_there_is_named),
		cmocka_unit_test(forward_passes_wait_for_backward_passes),
		cmocka_unit_test(device_without_an_operation_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
