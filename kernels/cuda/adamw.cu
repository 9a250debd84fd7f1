/* Updates parameters with AdamW. */
#include "kernels/cuda/launch.cuh"

/* The values that are the same for all elements of one update; the host computes them in double. */
struct update {
	float grad_scale;
	float beta1, beta2;
	float one_minus_beta1, one_minus_beta2; /* 1 - beta */
	float step_size;                        /* lr / (1 - beta1^step) */
	float inverse_root2;                    /* 1 / sqrt(1 - beta2^step) */
	float epsilon;
	float decay; /* 1 - lr * weight_decay */
};

__global__ static void update_elements(float *param, const float *grad, float *m, float *v, int64_t n, struct update u)
{
	WLB_FOR_ELEMENTS(i, n)
	{
		const float g = grad[i] * u.grad_scale;
		const float m_new = u.beta1 * m[i] + u.one_minus_beta1 * g;
		const float v_new = u.beta2 * v[i] + u.one_minus_beta2 * g * g;
		m[i] = m_new;
		v[i] = v_new;
		param[i] = u.decay * param[i] - u.step_size * m_new / (sqrtf(v_new) * u.inverse_root2 + u.epsilon);
	}
}

void wlb_cuda_adamw(struct wlb_device *device, void *param, const void *grad, void *m, void *v, int64_t n,
                    const struct wlb_adamw *adamw)
{
	if (n == 0)
		return;
	const double correction1 = 1 - pow(adamw->beta1, (double)adamw->step);
	const double correction2 = 1 - pow(adamw->beta2, (double)adamw->step);
	const struct update u = {
		(float)adamw->grad_scale,       (float)adamw->beta1,       (float)adamw->beta2,
		(float)(1 - adamw->beta1),      (float)(1 - adamw->beta2), (float)(adamw->lr / correction1),
		(float)(1 / sqrt(correction2)), (float)adamw->epsilon,     (float)(1 - adamw->lr * adamw->weight_decay),
	};
	wlb_cuda_launch(device, "adamw", {wlb_element_blocks(n), WLB_BLOCK}, update_elements, (float *)param,
	                (const float *)grad, (float *)m, (float *)v, n, u);
}
