/* The gradients of a step are those of its passes alone, whatever the buffer held before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>

#include "worker/model/gradients.h"
#include "worker/model/linear.h"

enum { ROWS = 3, HIDDEN = 8 };

static struct wlb_parameters *open_parameters(struct wlb_device *device)
{
	const struct wlb_model shape = {
		.hidden_size = HIDDEN,
		.intermediate_size = 5,
		.num_hidden_layers = 2,
		.num_attention_heads = 2,
		.num_key_value_heads = 1,
		.head_dim = 4,
		.vocab_size = 7,
		.max_position_embeddings = 8,
		.rope_theta = 1e4,
		.rms_norm_eps = 1e-5,
	};
	const struct wlb_plan plan = {.layout = {1, 1, 1, 1}, .interleave = 1, .micro_batches = 1, .zero_stage = 1};
	const struct wlb_coordinates coords = {0};
	struct wlb_error error = {0};
	struct wlb_parameters *p = wlb_parameters_new(&shape, &plan, &coords, device, &error);
	assert_non_null(p);
	for (size_t i = 0; i < p->elements; i++)
		((double *)p->gradients)[i] = NAN;
	return p;
}

/* Every element of the tensor has this value. */
static void expect_all(const struct wlb_parameters *p, int tensor, double value)
{
	const double *gradient = wlb_gradient(p, tensor);
	for (int64_t i = 0; i < wlb_tensor_block_elements(&p->tensors[tensor].block); i++)
		assert_true(gradient[i] == value);
}

static void add_product(const struct wlb_parameters *p, const struct wlb_matrix *w, int64_t rows)
{
	double ones[ROWS * 32];
	for (int i = 0; i < ROWS * 32; i++)
		ones[i] = 1.0;
	assert_in_range(w->weight.out, 1, 32);
	assert_in_range(w->weight.in, 1, 32);
	wlb_linear_d_w(p->device, ones, w->weight.out, ones, w, rows);
}

/* The first product of a step overwrites all tensors of its matrix, and the second is added, as are rows of none. */
static void check_matrices(struct wlb_parameters *p)
{
	const struct wlb_layer_tensors *layer = &p->chunks[0].tensors[0];
	const struct wlb_matrix qkv = wlb_matrix_of(p, layer->q, layer->v),
				down = wlb_matrix_of(p, layer->down, layer->down);
	for (int step = 0; step < 2; step++) {
		wlb_gradients_begin(p);
		add_product(p, &qkv, 0);
		add_product(p, &qkv, ROWS);
		add_product(p, &qkv, 0);
		expect_all(p, layer->k, ROWS);
		add_product(p, &qkv, 1);
		for (int tensor = layer->q; tensor <= layer->v; tensor++)
			expect_all(p, tensor, ROWS + 1);
		add_product(p, &down, 1);
		expect_all(p, layer->down, 1);
	}
}

/* Another tensor is zeroed once. */
static void check_vectors(struct wlb_parameters *p)
{
	int norm = p->chunks[0].tensors[1].post_norm;
	for (int step = 0; step < 2; step++) {
		wlb_gradients_begin(p);
		for (int times = 1; times <= 2; times++) {
			double *gradient = wlb_gradient_to_add(p, norm);
			for (int i = 0; i < HIDDEN; i++)
				gradient[i] += 1.0;
			expect_all(p, norm, times);
		}
	}
}

/* What was not added to is 0 when its bucket is complete. */
static void check_complete(struct wlb_parameters *p)
{
	const struct wlb_layer_tensors *layer = &p->chunks[0].tensors[0];
	const struct wlb_matrix o = wlb_matrix_of(p, layer->o, layer->o);
	wlb_gradients_begin(p);
	add_product(p, &o, ROWS);
	wlb_gradients_complete(p, p->tensors[layer->o].bucket);
	expect_all(p, layer->o, ROWS);
	for (int tensor = 0; tensor < p->count; tensor++)
		if (tensor != layer->o && p->tensors[tensor].bucket == p->tensors[layer->o].bucket)
			expect_all(p, tensor, 0);
	assert_false(p->tensors[p->embedding].is_added_to);
	for (int bucket = 0; bucket < p->bucket_count; bucket++)
		wlb_gradients_complete(p, bucket);
	expect_all(p, layer->o, ROWS);
	expect_all(p, p->embedding, 0);
	expect_all(p, p->final_norm, 0);
}

static void run(void (*check)(struct wlb_parameters *))
{
	struct wlb_error error = {0};
	struct wlb_device *device = wlb_device_open_cpu(WLB_FLOAT64, 1, &error);
	assert_non_null(device);
	struct wlb_parameters *p = open_parameters(device);
	check(p);
	wlb_parameters_free(p);
	wlb_device_close(device);
}

static void the_first_product_of_a_step_overwrites(void **state)
{
	(void)state;
	run(check_matrices);
}

static void another_tensor_is_zeroed_once(void **state)
{
	(void)state;
	run(check_vectors);
}

static void what_was_not_added_to_is_zero(void **state)
{
	(void)state;
	run(check_complete);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_product_of_a_step_overwrites),
		cmocka_unit_test(another_tensor_is_zeroed_once),
		cmocka_unit_test(what_was_not_added_to_is_zero),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
