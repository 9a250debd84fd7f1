/* AdamW against the algorithm as its paper writes it, over several updates. */
#include "tests/unit/kernels/support.h"

#include <math.h>
#include <stdlib.h>

static const size_t SIZES[] = {0, 1, 3, 17, 257, 20011};

static void reference_adamw(double *param, const double *grad, double *m, double *v, size_t n,
                            const struct wlb_adamw *a, double factor)
{
	for (size_t i = 0; i < n; i++) {
		double g = grad[i] * factor;
		m[i] = a->beta1 * m[i] + (1 - a->beta1) * g;
		v[i] = a->beta2 * v[i] + (1 - a->beta2) * g * g;
		double m_hat = m[i] / (1 - pow(a->beta1, (double)a->step));
		double v_hat = v[i] / (1 - pow(a->beta2, (double)a->step));
		param[i] -= a->lr * (m_hat / (sqrt(v_hat) + a->epsilon) + a->weight_decay * param[i]);
	}
}

/* Three updates with this factor, and one with the factor 0, which changes nothing. in_place: param is the masters. */
static void check_size(struct wlb_device *device, size_t n, int in_place)
{
	double *param = random_numbers(n, 1), *grad = random_numbers(n, 2);
	double *m = calloc(n + 1, sizeof(*m)), *v = calloc(n + 1, sizeof(*v));
	double factors[] = {0.5, 0.0};
	void *masters = to_array(device, param, n), *ga = to_array(device, grad, n);
	void *pa = in_place ? masters : to_array(device, NULL, n);
	void *ma = to_array(device, NULL, n), *va = to_array(device, NULL, n);
	double *factor = device->ops->alloc(device, sizeof(factors), NULL);
	device->ops->to_device(device, NULL, factor, factors, sizeof(factors));
	for (int step = 1; step <= 4; step++) {
		const struct wlb_adamw adamw = {.lr = 0.01 * step,
		                                .beta1 = 0.9,
		                                .beta2 = 0.95,
		                                .epsilon = 1e-8,
		                                .weight_decay = 0.1,
		                                .step = step};
		if (step <= 3)
			reference_adamw(param, grad, m, v, n, &adamw, factors[0]);
		device->ops->adamw(device, pa, masters, ga, ma, va, (int64_t)n, &adamw, factor + (step > 3));
	}
	check_close(device, "param", pa, param, n, 1e-6);
	check_close(device, "masters", masters, param, n, 1e-6);
	check_close(device, "m", ma, m, n, 1e-6);
	check_close(device, "v", va, v, n, 1e-6);
	check_close(device, "grad", ga, grad, n, 1e-7);
	RELEASE(device, masters, ga, ma, va, factor, in_place ? NULL : pa);
	free(param), free(grad), free(m), free(v);
}

static void check_adamw(struct wlb_device *device)
{
	for (size_t i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); i++)
		for (int in_place = 0; in_place < 2; in_place++)
			check_size(device, SIZES[i], in_place);
}

static void test_adamw(void **state)
{
	(void)state;
	for_each_device(check_adamw);
}

static void check_factor(struct wlb_device *device)
{
	static const struct {
		double sum_squares, loss_sum, clip, most_norm, factor;
	} cases[] = {
		{4, 1, 0, INFINITY, 1},
		{4, 1, 3, INFINITY, 1},
		{0, 1, 1, INFINITY, 1},
		{4, 1, 1, INFINITY, 1 / (2 + 1e-6)},
		{INFINITY, 1, 1, INFINITY, 0},
		{NAN, 1, 0, INFINITY, 0},
		{4, NAN, 1, INFINITY, 0},
		{4, INFINITY, 0, INFINITY, 0},
		{4, -INFINITY, 1, INFINITY, 0},
		{4, 1, 0, 2, 1},
		{4, 1, 1, 2, 1 / (2 + 1e-6)},
		{4, 1, 1, 1.9, 0},
		{NAN, 1, 1, 1.9, 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		double got = NAN, *at = device->ops->alloc(device, 3 * sizeof(double), NULL);
		device->ops->to_device(device, NULL, at + 1, &cases[i].sum_squares, sizeof(double));
		device->ops->to_device(device, NULL, at + 2, &cases[i].loss_sum, sizeof(double));
		device->ops->clip_factor(device, at, at + 1, at + 2, cases[i].clip, cases[i].most_norm);
		device->ops->to_host(device, &got, at, sizeof(got));
		if (got != cases[i].factor)
			fail_msg("case %zu: factor %.17g, want %.17g", i, got, cases[i].factor);
		RELEASE(device, at);
	}
}

static void test_factor(void **state)
{
	(void)state;
	for_each_device(check_factor);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_adamw), cmocka_unit_test(test_factor)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
