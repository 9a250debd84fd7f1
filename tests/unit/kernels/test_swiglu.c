#include "tests/unit/kernels/support.h"

#include <math.h>
#include <stdlib.h>

static const size_t SIZES[] = {0, 1, 3, 17, 257, 20011};
enum { SIZE_COUNT = sizeof(SIZES) / sizeof(SIZES[0]) };

/* Gates reach from where the sigmoid is 0 to where it is 1, beyond what exp can hold. */
static double *gates(size_t n)
{
	double *gate = random_numbers(n, 1);
	for (size_t i = 0; i < n; i++)
		gate[i] *= i % 5 == 4 ? 1000 : 8;
	return gate;
}

static void check_forward(struct wlb_device *device)
{
	for (size_t s = 0; s < SIZE_COUNT; s++) {
		size_t n = SIZES[s];
		double *gate = gates(n), *up = random_numbers(n, 2), *want = random_numbers(n, 3);
		void *ga = to_array(device, gate, n), *ua = to_array(device, up, n), *out = to_array(device, NULL, n);
		for (size_t i = 0; i < n; i++)
			want[i] = gate[i] / (1 + exp(-gate[i])) * up[i];
		device->ops->swiglu_forward(device, out, ga, ua, (int64_t)n);
		check_close(device, "out", out, want, n, 2e-6);
		device->ops->swiglu_forward(device, ga, ga, ua, (int64_t)n);
		check_close(device, "out in the place of gate", ga, want, n, 2e-6);
		RELEASE(device, ga, ua, out);
		free(gate), free(up), free(want);
	}
}

static void test_forward(void **state)
{
	(void)state;
	for_each_device(check_forward);
}

struct run {
	struct wlb_device *device;
	int64_t n;
	double *gate, *up, *out, *weights;
};

static double run_loss(void *context)
{
	struct run *r = context;
	r->device->ops->swiglu_forward(r->device, r->out, r->gate, r->up, r->n);
	return weighted_sum(r->out, r->weights, (size_t)r->n);
}

static void test_backward(void **state)
{
	(void)state;
	struct wlb_device *device = open_double(2);
	for (size_t s = 0; s < SIZE_COUNT; s++) {
		size_t n = SIZES[s] < 300 ? SIZES[s] : 300;
		struct run r = {device,
		                (int64_t)n,
		                random_numbers(n, 1),
		                random_numbers(n, 2),
		                random_numbers(n, 3),
		                random_numbers(n, 4)};
		double *d_gate = random_numbers(n, 5), *d_up = random_numbers(n, 6);
		device->ops->swiglu_backward(device, d_gate, d_up, r.weights, r.gate, r.up, r.n);
		check_differences("d_gate", &(struct difference_check){run_loss, &r, r.gate, d_gate, n});
		check_differences("d_up", &(struct difference_check){run_loss, &r, r.up, d_up, n});
		free(r.gate), free(r.up), free(r.out), free(r.weights), free(d_gate), free(d_up);
	}
	wlb_device_close(device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_forward), cmocka_unit_test(test_backward)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
