#include "kernels/cpu/operations.h"

void VARIANT(adamw)(struct wlb_device *device, void *param_out, const void *grad_in, void *m_out, void *v_out,
                    int64_t n, const struct wlb_adamw *adamw)
{
	real *param = param_out, *m = m_out, *v = v_out;
	const real *grad = grad_in;
	double correction1 = 1 - pow(adamw->beta1, (double)adamw->step);
	double correction2 = 1 - pow(adamw->beta2, (double)adamw->step);
	const real grad_scale = (real)adamw->grad_scale;
	const real beta1 = (real)adamw->beta1, beta2 = (real)adamw->beta2;
	const real rest1 = (real)(1 - adamw->beta1), rest2 = (real)(1 - adamw->beta2);
	const real step_size = (real)(adamw->lr / correction1);
	const real root2 = (real)(1 / sqrt(correction2));
	const real epsilon = (real)adamw->epsilon;
	const real keep = (real)(1 - adamw->lr * adamw->weight_decay);
	int threads = wlb_cpu_of(device)->threads;
#pragma omp parallel for simd schedule(static) num_threads(threads) if (n >= WLB_CPU_PARALLEL_ELEMENTS)
	for (int64_t i = 0; i < n; i++) {
		real g = grad[i] * grad_scale;
		m[i] = beta1 * m[i] + rest1 * g;
		v[i] = beta2 * v[i] + rest2 * g * g;
		param[i] = keep * param[i] - step_size * m[i] / (sqrt(v[i]) * root2 + epsilon);
	}
}
