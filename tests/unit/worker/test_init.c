/* Initial weights: the generator against its published answers, and the distributions asked for. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "worker/model/parameters.h"
#include "worker/model/philox.h"

/* The known answers of Random123 1.14, examples/kat_vectors, philox4x32 10. */
static void philox_gives_the_published_answers(void **state)
{
	static const struct {
		uint32_t counter[4], key[2], out[4];
	} known[] = {
		{{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
	         {0xffffffff, 0xffffffff},
	         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
	         {0xa4093822, 0x299f31d0},
	         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		uint32_t out[4];
		wlb_philox4x32(known[i].counter, known[i].key, out);
		assert_memory_equal(out, known[i].out, sizeof(out));
	}
	(void)state;
}

static void normals_are_normal(void **state)
{
	enum { COUNT = 200000 };
	double sum = 0.0, squares = 0.0, fourth = 0.0, beyond_2 = 0.0;
	for (uint64_t i = 0; i < COUNT; i++) {
		double x = wlb_philox_normal(1, 2, i);
		sum += x;
		squares += x * x;
		fourth += x * x * x * x;
		beyond_2 += fabs(x) > 2.0;
	}
	/* Five standard errors of each. */
	assert_true(fabs(sum / COUNT) < 0.0112);
	assert_true(fabs(squares / COUNT - 1.0) < 0.0159);
	assert_true(fabs(fourth / COUNT - 3.0) < 0.11);
	assert_true(fabs(beyond_2 / COUNT - 0.0455) < 0.0024);
	assert_true(wlb_philox_normal(1, 2, 3) != wlb_philox_normal(2, 2, 3));
	assert_true(wlb_philox_normal(1, 2, 3) != wlb_philox_normal(1, 3, 3));
	(void)state;
}

/* Also from an odd number on, in the middle of a pair. */
static void runs_of_numbers_are_the_single_ones(void **state)
{
	double run[9];
	for (uint64_t first = 6; first < 9; first++) {
		wlb_philox_normals(1, 2, first, 9, run);
		for (uint64_t i = 0; i < 9; i++)
			assert_true(run[i] == wlb_philox_normal(1, 2, first + i));
	}
	(void)state;
}

static double deviation(const struct wlb_parameters *p, int tensor)
{
	const double *w = wlb_weight(p, tensor);
	int64_t count = p->tensors[tensor].block.rows * p->tensors[tensor].block.cols;
	double squares = 0.0;
	for (int64_t i = 0; i < count; i++)
		squares += w[i] * w[i];
	return sqrt(squares / (double)count);
}

/* `p` was initialised with one thread, from seed 1. */
static void threads_change_no_bit(struct wlb_parameters *p)
{
	struct wlb_error error;
	size_t bytes = p->elements * sizeof(double);
	void *one = malloc(bytes);
	assert_non_null(one);
	memcpy(one, p->weights, bytes);
	for (int threads = 2; threads <= 5; threads++) {
		memset(p->weights, 0, bytes);
		p->device->host_threads = threads;
		assert_int_equal(wlb_parameters_init(p, 1, 0.02, NULL, NULL, &error), 0);
		assert_memory_equal(p->weights, one, bytes);
	}
	free(one);
}

/* Gemma's norms multiply by 1 + weight. */
static void norms_that_add_one_begin_at_0(struct wlb_device *device, const struct wlb_model *shape,
                                          const struct wlb_plan *plan)
{
	struct wlb_model gemma = *shape;
	struct wlb_error error = {0};
	gemma.family = WLB_FAMILY_GEMMA3;
	struct wlb_parameters *p = wlb_parameters_new(&gemma, plan, &(struct wlb_coordinates){0}, device, &error);
	assert_non_null(p);
	assert_int_equal(wlb_parameters_init(p, 1, 0.02, NULL, NULL, &error), 0);
	const struct wlb_layer_tensors *l = &p->chunks[0].tensors[1];
	const int norms[] = {l->input_norm, l->attention_norm, l->post_norm, l->mlp_norm,
	                     l->q_norm,     l->k_norm,         p->final_norm};
	for (size_t i = 0; i < sizeof(norms) / sizeof(norms[0]); i++)
		assert_true(deviation(p, norms[i]) == 0.0);
	wlb_parameters_free(p);
}

static void weights_have_the_spread_asked_for(void **state)
{
	struct wlb_model shape = {.hidden_size = 64,
	                          .intermediate_size = 128,
	                          .num_hidden_layers = 8,
	                          .num_attention_heads = 4,
	                          .num_key_value_heads = 2,
	                          .head_dim = 16,
	                          .vocab_size = 257,
	                          .max_position_embeddings = 64,
	                          .rope_theta = 1e4,
	                          .rms_norm_eps = 1e-5};
	struct wlb_error error = {0};
	struct wlb_device *device = wlb_device_open_cpu(WLB_FLOAT64, 1, &error);
	struct wlb_plan plan = {.layout = {1, 1, 1, 1}, .interleave = 1, .micro_batches = 1};
	struct wlb_parameters *p = wlb_parameters_new(&shape, &plan, &(struct wlb_coordinates){0}, device, &error);
	assert_non_null(p);
	assert_int_equal(wlb_parameters_init(p, 1, 0.02, NULL, NULL, &error), 0);
	assert_true(fabs(deviation(p, p->embedding) - 0.02) < 0.001);
	assert_true(fabs(deviation(p, p->chunks[0].tensors[3].q) - 0.02) < 0.001);
	assert_true(fabs(deviation(p, p->chunks[0].tensors[3].o) - 0.02 / 4.0) < 0.0003);
	assert_true(fabs(deviation(p, p->chunks[0].tensors[7].down) - 0.02 / 4.0) < 0.0003);
	assert_true(deviation(p, p->chunks[0].tensors[0].input_norm) == 1.0);
	const double *first = wlb_weight(p, p->chunks[0].tensors[0].q),
		     *second = wlb_weight(p, p->chunks[0].tensors[1].q);
	assert_true(first[0] != second[0]);
	threads_change_no_bit(p);
	norms_that_add_one_begin_at_0(device, &shape, &plan);
	device->compute = (enum wlb_dtype)99;
	assert_int_equal(wlb_parameters_init(p, 1, 0.02, NULL, NULL, &error), -1);
	assert_string_equal(error.message, "element type 99: it must be float32 (0), float64 (1) or bfloat16 (2)");
	device->compute = WLB_FLOAT64;
	wlb_parameters_free(p);
	wlb_device_close(device);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(philox_gives_the_published_answers),
		cmocka_unit_test(normals_are_normal),
		cmocka_unit_test(runs_of_numbers_are_the_single_ones),
		cmocka_unit_test(weights_have_the_spread_asked_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
