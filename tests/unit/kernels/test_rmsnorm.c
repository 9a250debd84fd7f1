#include "tests/unit/kernels/support.h"

#include <math.h>
#include <stdlib.h>

static const struct {
	int64_t tokens, width;
} SIZES[] = {{1, 1}, {3, 17}, {17, 3}, {1, 257}, {129, 130}, {0, 5}};

static void check_forward_size(struct wlb_device *device, int64_t tokens, int64_t width, double addend)
{
	size_t n = (size_t)(tokens * width);
	double *x = random_numbers(n, 1), *weight = random_numbers((size_t)width, 2);
	double *want = random_numbers(n, 3), *want_rstd = random_numbers((size_t)tokens, 4);
	double *part = random_numbers(n, 5), *rest = random_numbers(n, 6);
	void *xa = to_array(device, x, n), *wa = to_array(device, weight, (size_t)width);
	void *out = to_array(device, NULL, n), *rstd = to_array(device, NULL, (size_t)tokens);
	void *again = to_array(device, NULL, n), *sum = to_array(device, NULL, n);
	for (int64_t t = 0; t < tokens; t++) {
		const double *row = x + t * width;
		want_rstd[t] = 1 / sqrt(weighted_sum(row, row, (size_t)width) / (double)width + 1e-5);
		for (int64_t i = 0; i < width; i++)
			want[t * width + i] = row[i] * want_rstd[t] * (weight[i] + addend);
	}
	device->ops->rmsnorm_forward(device, out, rstd, NULL, xa, NULL, wa, addend, tokens, width, 1e-5);
	check_close(device, "out", out, want, n, 2e-6);
	check_close(device, "rstd", rstd, want_rstd, (size_t)tokens, 2e-6);
	for (size_t i = 0; i < n; i++)
		rest[i] = x[i] - part[i];
	void *pa = to_array(device, part, n), *ra = to_array(device, rest, n);
	device->ops->rmsnorm_forward(device, out, rstd, sum, pa, ra, wa, addend, tokens, width, 1e-5);
	check_close(device, "sum", sum, x, n, 1e-6);
	check_close(device, "out of the sum", out, want, n, 1e-5);
	device->ops->rmsnorm_forward(device, again, rstd, NULL, sum, NULL, wa, addend, tokens, width, 1e-5);
	check_same_bits(device, "norm of the stored sum", again, out, n);
	device->ops->rmsnorm_forward(device, again, rstd, pa, pa, ra, wa, addend, tokens, width, 1e-5);
	check_same_bits(device, "sum in the place of x", pa, sum, n);
	check_same_bits(device, "out with the sum in the place of x", again, out, n);
	RELEASE(device, xa, wa, out, rstd, again, sum, pa, ra);
	free(x), free(weight), free(want), free(want_rstd), free(part), free(rest);
}

static void check_forward(struct wlb_device *device)
{
	for (size_t i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); i++)
		for (int addend = 0; addend <= 1; addend++)
			check_forward_size(device, SIZES[i].tokens, SIZES[i].width, addend);
}

static void test_forward(void **state)
{
	(void)state;
	for_each_device(check_forward);
}

struct run {
	struct wlb_device *device;
	int64_t tokens, width;
	double addend;
	double *x, *weight, *out, *rstd, *weights, *d_x, *d_weight;
};

static double run_loss(void *context)
{
	struct run *r = context;
	r->device->ops->rmsnorm_forward(r->device, r->out, r->rstd, NULL, r->x, NULL, r->weight, r->addend, r->tokens,
	                                r->width, 1e-5);
	return weighted_sum(r->out, r->weights, (size_t)(r->tokens * r->width));
}

/* Both gradients are added to what was there. */
static void check_backward(struct wlb_device *device, int64_t tokens, int64_t width, double addend)
{
	size_t n = (size_t)(tokens * width), w = (size_t)width;
	struct run r = {device, tokens, width, addend, .x = random_numbers(n, 1), .weight = random_numbers(w, 2)};
	r.out = random_numbers(n, 3), r.rstd = random_numbers((size_t)tokens, 4), r.weights = random_numbers(n, 5);
	r.d_x = random_numbers(n, 6), r.d_weight = random_numbers(w, 7);
	double *before_x = random_numbers(n, 6), *before_weight = random_numbers(w, 7);
	run_loss(&r);
	device->ops->rmsnorm_backward(device, r.d_x, r.d_weight, r.weights, r.x, r.weight, addend, r.rstd, tokens,
	                              width);
	for (size_t i = 0; i < n; i++)
		r.d_x[i] -= before_x[i];
	for (size_t i = 0; i < w; i++)
		r.d_weight[i] -= before_weight[i];
	check_differences("d_x", &(struct difference_check){run_loss, &r, r.x, r.d_x, n});
	check_differences("d_weight", &(struct difference_check){run_loss, &r, r.weight, r.d_weight, w});
	free(r.x), free(r.weight), free(r.out), free(r.rstd), free(r.weights), free(r.d_x), free(r.d_weight);
	free(before_x), free(before_weight);
}

static void test_backward(void **state)
{
	(void)state;
	struct wlb_device *device = open_double(2);
	for (size_t i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); i++)
		for (int addend = 0; addend <= 1; addend++)
			check_backward(device, SIZES[i].tokens, SIZES[i].width, addend);
	wlb_device_close(device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_forward), cmocka_unit_test(test_backward)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
