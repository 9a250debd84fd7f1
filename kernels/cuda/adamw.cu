/* Updates parameters with AdamW, from gradients that are clipped by their norm. */
#include "kernels/cuda/launch.cuh"

/* Elements of a thread at a time: 16 bytes of bfloat16, twice 16 of float32. */
enum { GROUP = 8 };

/* The values that are the same for all elements of one update; the host computes them in double. */
struct update {
	float beta1, beta2;
	float one_minus_beta1, one_minus_beta2; /* 1 - beta */
	float step_size;                        /* lr / (1 - beta1^step) */
	float inverse_root2;                    /* 1 / sqrt(1 - beta2^step) */
	float epsilon;
	float decay; /* 1 - lr * weight_decay */
};

/* bfloat16 is the upper half of a float32. */
struct bfloat16 {
	uint16_t bits;
};

__device__ static inline float to_float(float x)
{
	return x;
}

__device__ static inline float to_float(bfloat16 x)
{
	return __uint_as_float((unsigned)x.bits << 16);
}

/* The master of a weight: of a float32 weight it is what is kept, and a bfloat16 weight and what is kept are its halves
 * (kernels/bfloat16.h). */
__device__ static inline float join(float, float kept)
{
	return kept;
}

__device__ static inline float join(bfloat16 weight, uint16_t kept)
{
	return __uint_as_float((unsigned)(uint16_t)(weight.bits - (kept >> 15)) << 16 | kept);
}

__device__ static inline void split(float *weight, float *kept, float master)
{
	*weight = *kept = master;
}

__device__ static inline void split(bfloat16 *weight, uint16_t *kept, float master)
{
	const unsigned bits = master != master ? 0x7fc00000u : __float_as_uint(master);
	weight->bits = (uint16_t)((bits + 0x8000u) >> 16);
	*kept = (uint16_t)bits;
}

template <typename element> union group {
	uint4 parts[GROUP * sizeof(element) / sizeof(uint4)];
	element values[GROUP];
};

template <typename element> __device__ static inline group<element> load(const element *from)
{
	group<element> to;
	for (unsigned part = 0; part < sizeof(to) / sizeof(uint4); part++)
		to.parts[part] = ((const uint4 *)from)[part];
	return to;
}

template <typename element> __device__ static inline void store(element *to, const group<element> &from)
{
	for (unsigned part = 0; part < sizeof(from) / sizeof(uint4); part++)
		((uint4 *)to)[part] = from.parts[part];
}

__device__ static inline void update_one(float *master, float g, float *m, float *v, const struct update &u)
{
	*m = u.beta1 * *m + u.one_minus_beta1 * g;
	*v = u.beta2 * *v + u.one_minus_beta2 * g * g;
	*master = u.decay * *master - u.step_size * *m / (sqrtf(*v) * u.inverse_root2 + u.epsilon);
}

/* `param` may be `master`, so neither is __restrict__. */
template <typename weight, typename kept, typename gradient>
__global__ static void adamw_update(weight *param, kept *master, const gradient *grad, float *m, float *v, int64_t n,
                                    struct update u, const double *factor)
{
	const float scale = (float)*factor;
	if (*factor == 0)
		return;
	WLB_FOR_ELEMENTS(at, n / GROUP)
	{
		const int64_t first = at * GROUP;
		const group<gradient> g = load(grad + first);
		group<weight> w = load(param + first);
		group<kept> k = load(master + first);
		group<float> m_new = load(m + first), v_new = load(v + first);
		for (int i = 0; i < GROUP; i++) {
			float p = join(w.values[i], k.values[i]);
			update_one(&p, to_float(g.values[i]) * scale, &m_new.values[i], &v_new.values[i], u);
			split(&w.values[i], &k.values[i], p);
		}
		store(m + first, m_new);
		store(v + first, v_new);
		store(master + first, k);
		if ((const void *)param != (const void *)master)
			store(param + first, w);
	}
	const int64_t i = n / GROUP * GROUP + (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n) {
		float p = join(param[i], master[i]);
		update_one(&p, to_float(grad[i]) * scale, &m[i], &v[i], u);
		split(&param[i], &master[i], p);
	}
}

__global__ static void clip_factor(double *factor, const double *sum_squares, const double *loss_sum, double clip,
                                   double most_norm)
{
	const double norm = sqrt(*sum_squares), coefficient = clip > 0 ? clip / (norm + 1e-6) : 1;
	const bool is_bad = !isfinite(*loss_sum) || !isfinite(*sum_squares) || norm > most_norm;
	*factor = is_bad ? 0 : coefficient < 1 ? coefficient : 1;
}

void wlb_cuda_clip_factor(struct wlb_device *device, double *factor, const double *sum_squares, const double *loss_sum,
                          double clip, double most_norm)
{
	wlb_cuda_launch(device, "clip_factor", {1, 1}, clip_factor, factor, sum_squares, loss_sum, clip, most_norm);
}

/* The arguments of a call. */
struct arrays {
	void *param, *master;
	const void *grad;
	void *m, *v;
	int64_t n;
	const double *factor;
	struct wlb_queue *queue;
};

template <typename weight, typename kept, typename gradient>
static void launch(struct wlb_device *device, const struct arrays &a, const struct update &u)
{
	const unsigned blocks = wlb_element_blocks(a.n / GROUP + 1);
	wlb_cuda_launch(device, "adamw", {blocks, WLB_BLOCK, 0, a.queue}, adamw_update<weight, kept, gradient>,
	                (weight *)a.param, (kept *)a.master, (const gradient *)a.grad, (float *)a.m, (float *)a.v, a.n,
	                u, a.factor);
}

void wlb_cuda_adamw(struct wlb_device *device, void *param, void *master, const void *grad, void *m, void *v, int64_t n,
                    const struct wlb_adamw *adamw, const double *factor)
{
	if (n == 0)
		return;
	const double correction1 = 1 - pow(adamw->beta1, (double)adamw->step);
	const double correction2 = 1 - pow(adamw->beta2, (double)adamw->step);
	const struct update u = {
		(float)adamw->beta1,
		(float)adamw->beta2,
		(float)(1 - adamw->beta1),
		(float)(1 - adamw->beta2),
		(float)(adamw->lr / correction1),
		(float)(1 / sqrt(correction2)),
		(float)adamw->epsilon,
		(float)(1 - adamw->lr * adamw->weight_decay),
	};
	const struct arrays a = {param, master, grad, m, v, n, factor, adamw->queue};
	if (device->compute == WLB_FLOAT32)
		launch<float, float, float>(device, a, u);
	else if (device->gradients == WLB_FLOAT32)
		launch<bfloat16, uint16_t, float>(device, a, u);
	else
		launch<bfloat16, uint16_t, bfloat16>(device, a, u);
}
