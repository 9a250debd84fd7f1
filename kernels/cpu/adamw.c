/* Updates parameters with AdamW, from gradients that are clipped by their norm. */
#include "kernels/cpu/operations.h"

#include <string.h>

/* Elements between two prefetches; parts begin at multiples of it, and so have whole cache lines. */
enum { BLOCK = 64 };

/* The values that are the same for all elements of one update; they are computed in double. */
struct update {
	real grad_scale;
	real beta1, beta2;
	real one_minus_beta1, one_minus_beta2; /* 1 - beta */
	real step_size;                        /* lr / (1 - beta1^step) */
	real inverse_root2;                    /* 1 / sqrt(1 - beta2^step) */
	real epsilon;
	real decay; /* 1 - lr * weight_decay */
};

static void update_block(real *master, const real *grad, real *m, real *v, int64_t n, struct update u)
{
#pragma omp simd
	for (int64_t i = 0; i < n; i++) {
		real g = grad[i] * u.grad_scale;
		m[i] = u.beta1 * m[i] + u.one_minus_beta1 * g;
		v[i] = u.beta2 * v[i] + u.one_minus_beta2 * g * g;
		master[i] = u.decay * master[i] - u.step_size * m[i] / (sqrt(v[i]) * u.inverse_root2 + u.epsilon);
	}
}

static void update_range(real *param, real *master, const real *grad, real *m, real *v, struct wlb_range range,
                         const struct update *u)
{
	for (int64_t i = range.begin; i < range.end; i += BLOCK) {
		int64_t left = range.end - i, n = left < BLOCK ? left : BLOCK;
		wlb_prefetch(master + i, BLOCK);
		wlb_prefetch(grad + i, BLOCK);
		wlb_prefetch(m + i, BLOCK);
		wlb_prefetch(v + i, BLOCK);
		update_block(master + i, grad + i, m + i, v + i, n, *u);
		if (param != master)
			memcpy(param + i, master + i, (size_t)n * sizeof(real));
	}
}

void VARIANT(clip_factor)(struct wlb_device *device, double *factor, const double *sum_squares, const double *loss_sum,
                          double clip, double most_norm)
{
	(void)device;
	double norm = sqrt(*sum_squares), coefficient = clip > 0 ? clip / (norm + 1e-6) : 1;
	*factor = !isfinite(*loss_sum) || !isfinite(*sum_squares) || norm > most_norm ? 0 : fmin(1, coefficient);
}

void VARIANT(adamw)(struct wlb_device *device, void *param, void *master, const void *grad, void *m, void *v, int64_t n,
                    const struct wlb_adamw *adamw, const double *factor)
{
	if (*factor == 0)
		return;
	double correction1 = 1 - pow(adamw->beta1, (double)adamw->step);
	double correction2 = 1 - pow(adamw->beta2, (double)adamw->step);
	const struct update u = {
		.grad_scale = (real)*factor,
		.beta1 = (real)adamw->beta1,
		.beta2 = (real)adamw->beta2,
		.one_minus_beta1 = (real)(1 - adamw->beta1),
		.one_minus_beta2 = (real)(1 - adamw->beta2),
		.step_size = (real)(adamw->lr / correction1),
		.inverse_root2 = (real)(1 / sqrt(correction2)),
		.epsilon = (real)adamw->epsilon,
		.decay = (real)(1 - adamw->lr * adamw->weight_decay),
	};
	int parts = wlb_cpu_of(device)->threads;
#pragma omp parallel for schedule(static, 1) num_threads(parts) if (n >= WLB_CPU_PARALLEL_ELEMENTS)
	for (int part = 0; part < parts; part++)
		update_range(param, master, grad, m, v, wlb_cpu_part(n, BLOCK, part, parts), &u);
}
