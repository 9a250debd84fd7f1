/* The same inputs and thread count give the same bits, every time. Sizes are large enough for all threads to work. */
#include "tests/unit/kernels/support.h"

#include <stdlib.h>
#include <string.h>

enum { TOKENS = 700, HEADS = 6, KV_HEADS = 2, HEAD_DIM = 16, WIDTH = HEADS * HEAD_DIM, N = TOKENS * WIDTH, RUNS = 10 };

/* Every operation whose result depends on an order of addition, into one array of outputs. */
enum { OUTPUTS = 17 };

static const struct wlb_segment SEGMENTS[] = {{0, 300, 0, 300, 0}, {300, 200, 300, 200, 0}, {500, 200, 300, 400, 200}};

struct outputs {
	double *array[OUTPUTS];
	size_t bytes[OUTPUTS];
	int count;
};

static double *output(struct outputs *outputs, size_t count)
{
	double *array = random_numbers(count, 100 + (uint64_t)outputs->count);
	outputs->array[outputs->count] = array;
	outputs->bytes[outputs->count++] = count * sizeof(double);
	return array;
}

static void run_attention(struct wlb_device *device, struct outputs *o, const double *q, const double *k,
                          const double *v)
{
	const struct wlb_segments segments = {.segments = SEGMENTS, .count = 3, .max_q = 300, .max_k = 400};
	const struct wlb_attention_shape shape = {TOKENS, TOKENS, HEADS, KV_HEADS, HEAD_DIM, WIDTH, KV_HEADS * HEAD_DIM,
	                                          WIDTH,  0,      0};
	double *out = output(o, N), *lse = output(o, TOKENS * HEADS), *d_q = output(o, N);
	double *d_k = output(o, TOKENS * KV_HEADS * HEAD_DIM), *d_v = output(o, TOKENS * KV_HEADS * HEAD_DIM);
	device->ops->attention_forward(device, out, lse, q, k, v, &segments, &shape);
	device->ops->attention_backward(device, d_q, d_k, d_v, q, q, k, v, out, lse, &segments, &shape);
}

/* As two ranks with a slice each. */
static void run_cross_entropy(struct wlb_device *device, struct outputs *o, const double *logits, const int32_t *ids)
{
	enum { SLICE = WIDTH / 2, SLICE_N = TOKENS * SLICE };
	double *slices[2] = {output(o, SLICE_N), output(o, SLICE_N)}, *statistics = output(o, 2 * TOKENS * 3);
	for (int part = 0; part < 2; part++) {
		memcpy(slices[part], logits + part * SLICE_N, SLICE_N * sizeof(double));
		device->ops->cross_entropy_statistics(device, statistics + part * TOKENS * 3, slices[part], ids, TOKENS,
		                                      part * SLICE, SLICE);
	}
	for (int part = 0; part < 2; part++)
		device->ops->cross_entropy_gradient(device, output(o, 1), slices[part], statistics, 2, ids, TOKENS,
		                                    part * SLICE, SLICE, 1, 0);
}

static struct outputs run_all(struct wlb_device *device)
{
	const struct wlb_ops *ops = device->ops;
	struct outputs o = {.count = 0};
	double *x = random_numbers(N, 1), *y = random_numbers(N, 2), *z = random_numbers(N, 3);
	int32_t ids[TOKENS];
	for (int t = 0; t < TOKENS; t++)
		ids[t] = t * t % 11;
	ops->linear_d_w(device, output(&o, WIDTH * WIDTH), x, WIDTH, y, WIDTH, 1, TOKENS, WIDTH, WIDTH);
	ops->embedding_backward(device, output(&o, 11 * WIDTH), x, ids, TOKENS, WIDTH, 0, 11);
	double *rstd = output(&o, TOKENS);
	ops->rmsnorm_forward(device, output(&o, N), rstd, NULL, x, NULL, y, 0, TOKENS, WIDTH, 1e-5);
	ops->rmsnorm_backward(device, output(&o, N), output(&o, WIDTH), y, x, z, 0, rstd, TOKENS, WIDTH);
	run_attention(device, &o, x, y, z);
	ops->sum_squares(device, output(&o, 1), x, N);
	run_cross_entropy(device, &o, x, ids);
	free(x), free(y), free(z);
	return o;
}

static void free_outputs(struct outputs *o)
{
	for (int i = 0; i < o->count; i++)
		free(o->array[i]);
}

static void test_same_bits(void **state)
{
	(void)state;
	for (int threads = 1; threads <= 4; threads++) {
		struct wlb_device *device = open_double(threads);
		struct outputs first = run_all(device);
		assert_int_equal(first.count, OUTPUTS);
		for (int run = 1; run < RUNS; run++) {
			struct outputs again = run_all(device);
			for (int i = 0; i < first.count; i++)
				assert_memory_equal(again.array[i], first.array[i], first.bytes[i]);
			free_outputs(&again);
		}
		free_outputs(&first);
		wlb_device_close(device);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
