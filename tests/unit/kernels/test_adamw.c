/* AdamW against the algorithm as its paper writes it, over several updates. */
#include "tests/unit/kernels/support.h"

#include <math.h>
#include <stdlib.h>

static const size_t SIZES[] = {0, 1, 3, 17, 257, 20011};

static void reference_adamw(double *param, const double *grad, double *m, double *v, size_t n,
                            const struct wlb_adamw *a)
{
	for (size_t i = 0; i < n; i++) {
		double g = grad[i] * a->grad_scale;
		m[i] = a->beta1 * m[i] + (1 - a->beta1) * g;
		v[i] = a->beta2 * v[i] + (1 - a->beta2) * g * g;
		double m_hat = m[i] / (1 - pow(a->beta1, (double)a->step));
		double v_hat = v[i] / (1 - pow(a->beta2, (double)a->step));
		param[i] -= a->lr * (m_hat / (sqrt(v_hat) + a->epsilon) + a->weight_decay * param[i]);
	}
}

static void check_size(struct wlb_device *device, size_t n)
{
	double *param = random_numbers(n, 1), *grad = random_numbers(n, 2);
	double *m = calloc(n + 1, sizeof(*m)), *v = calloc(n + 1, sizeof(*v));
	void *pa = to_array(device, param, n), *ga = to_array(device, grad, n);
	void *ma = to_array(device, NULL, n), *va = to_array(device, NULL, n);
	for (int step = 1; step <= 3; step++) {
		const struct wlb_adamw adamw = {.lr = 0.01 * step,
		                                .beta1 = 0.9,
		                                .beta2 = 0.95,
		                                .epsilon = 1e-8,
		                                .weight_decay = 0.1,
		                                .grad_scale = 0.5,
		                                .step = step};
		reference_adamw(param, grad, m, v, n, &adamw);
		device->ops->adamw(device, pa, ga, ma, va, (int64_t)n, &adamw);
	}
	check_close(device, "param", pa, param, n, 1e-6);
	check_close(device, "m", ma, m, n, 1e-6);
	check_close(device, "v", va, v, n, 1e-6);
	check_close(device, "grad", ga, grad, n, 1e-7);
	RELEASE(device, pa, ga, ma, va);
	free(param), free(grad), free(m), free(v);
}

static void check_adamw(struct wlb_device *device)
{
	for (size_t i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); i++)
		check_size(device, SIZES[i]);
}

static void test_adamw(void **state)
{
	(void)state;
	for_each_device(check_adamw);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_adamw)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
