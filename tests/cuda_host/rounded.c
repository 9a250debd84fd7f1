#include "tests/cuda_host/rounded.h"

#include <math.h>

#include "kernels/attention_tiles.h"

static const struct wlb_ops *exact;
static struct wlb_ops rounded;
static uint64_t state;

/* d: uniform in [-u, u] (Knuth's MMIX generator). */
static double rounding(void)
{
	state = state * 6364136223846793005U + 1442695040888963407U;
	return 0x1p-8 * ((double)(state >> 11) * 0x1p-52 - 1);
}

static void round_rows(void *values, int64_t stride, int64_t rows, int64_t width)
{
	double *x = values;
	for (int64_t row = 0; row < rows; row++)
		for (int64_t i = 0; i < width; i++)
			x[row * stride + i] *= 1 + rounding();
}

/* -- operations of rows -- */

static void linear(struct wlb_device *d, void *y, int64_t y_stride, const void *x, int64_t x_stride,
                   const struct wlb_weight *w, const void *residual, int64_t n)
{
	exact->linear(d, y, y_stride, x, x_stride, w, residual, n);
	round_rows(y, y_stride, n, w->out);
}

static void linear_d_x(struct wlb_device *d, void *d_x, int64_t d_x_stride, const void *d_y, int64_t d_y_stride,
                       const struct wlb_weight *w, int add, int64_t n)
{
	exact->linear_d_x(d, d_x, d_x_stride, d_y, d_y_stride, w, add, n);
	round_rows(d_x, d_x_stride, n, w->in);
}

/* Without a residual, which only tensor parallelism has. */
static void rmsnorm_forward(struct wlb_device *d, void *out, void *rstd, void *sum, const void *x, const void *residual,
                            const void *weight, double addend, int64_t tokens, int64_t width, double epsilon)
{
	exact->rmsnorm_forward(d, out, rstd, sum, x, residual, weight, addend, tokens, width, epsilon);
	round_rows(out, width, tokens, width);
}

static void rmsnorm_backward(struct wlb_device *d, void *d_x, void *d_weight, const void *d_out, const void *x,
                             const void *weight, double addend, const void *rstd, int64_t tokens, int64_t width)
{
	exact->rmsnorm_backward(d, d_x, d_weight, d_out, x, weight, addend, rstd, tokens, width);
	round_rows(d_x, width, tokens, width);
}

static void add_bias(struct wlb_device *d, void *y, int64_t stride, const void *bias, int64_t n, int64_t width)
{
	exact->add_bias(d, y, stride, bias, n, width);
	round_rows(y, stride, n, width);
}

static void group_norm_forward(struct wlb_device *d, void *out, int64_t out_stride, const void *x, int64_t x_stride,
                               const void *squares, const void *weight, const struct wlb_norm_groups *g)
{
	exact->group_norm_forward(d, out, out_stride, x, x_stride, squares, weight, g);
	round_rows(out, out_stride, g->rows, g->groups * g->width);
}

static void group_norm_backward(struct wlb_device *d, void *d_y, int64_t d_stride, void *d_weight, const void *x,
                                int64_t x_stride, const void *squares, const void *products, const void *weight,
                                const struct wlb_norm_groups *g)
{
	exact->group_norm_backward(d, d_y, d_stride, d_weight, x, x_stride, squares, products, weight, g);
	round_rows(d_y, d_stride, g->rows, g->groups * g->width);
}

/* What is not rotated is not stored again. */
static void rope(struct wlb_device *d, void *x, int64_t stride, const void *angles, int64_t tokens, int heads,
                 int head_dim, int pairs, int direction)
{
	exact->rope(d, x, stride, angles, tokens, heads, head_dim, pairs, direction);
	for (int head = 0; head < heads; head++)
		round_rows((double *)x + (int64_t)head * head_dim, stride, tokens, 2 * pairs);
}

static void swiglu_forward(struct wlb_device *d, void *out, const void *gate_up, int64_t n, int64_t width)
{
	exact->swiglu_forward(d, out, gate_up, n, width);
	round_rows(out, width, n, width);
}

static void swiglu_backward(struct wlb_device *d, void *gate_up, void *d_out, int64_t n, int64_t width)
{
	exact->swiglu_backward(d, gate_up, d_out, n, width);
	round_rows(gate_up, 2 * width, n, 2 * width);
	round_rows(d_out, width, n, width);
}

static void geglu_forward(struct wlb_device *d, void *out, const void *gate_up, int64_t n, int64_t width)
{
	exact->geglu_forward(d, out, gate_up, n, width);
	round_rows(out, width, n, width);
}

static void geglu_backward(struct wlb_device *d, void *gate_up, void *d_out, int64_t n, int64_t width)
{
	exact->geglu_backward(d, gate_up, d_out, n, width);
	round_rows(gate_up, 2 * width, n, 2 * width);
	round_rows(d_out, width, n, width);
}

static void scale_all(struct wlb_device *d, void *x, double factor, int64_t n)
{
	exact->scale(d, x, factor, n);
	round_rows(x, n, 1, n);
}

static void softcap(struct wlb_device *d, void *x, double cap, int64_t n)
{
	exact->softcap(d, x, cap, n);
	round_rows(x, n, 1, n);
}

static void cross_entropy_gradient(struct wlb_device *d, double *loss_sum, void *logits, const void *statistics,
                                   int parts, const int32_t *targets, int64_t tokens, int64_t first, int64_t count,
                                   double scale, double cap)
{
	exact->cross_entropy_gradient(d, loss_sum, logits, statistics, parts, targets, tokens, first, count, scale,
	                              cap);
	round_rows(logits, count, tokens, count);
}

static void add(struct wlb_device *d, void *y, const void *x, int64_t n)
{
	exact->add(d, y, x, n);
	round_rows(y, n, 1, n);
}

/* -- attention -- */

/* Where one head's rows of a query and a key that it sees are, in double. */
struct pair {
	int64_t q, k, out; /* elements into q, into k and v, into out */
	int64_t lse;
	double scale;
	double softcap;
};

static int32_t first_key(const struct wlb_segment *segment, int window, int32_t query)
{
	const int32_t end = segment->q_offset + query + 1;
	return window > 0 && end > window ? end - window : 0;
}

/* Calls visit for each query and each key that it sees. */
static void visit_pairs(const struct wlb_segments *segments, const struct wlb_attention_shape *s,
                        void (*visit)(const void *arrays, const struct pair *, int head_dim), const void *arrays)
{
	for (const struct wlb_segment *one = segments->segments; one < segments->segments + segments->count; one++)
		for (int32_t i = 0; i < one->q_count; i++)
			for (int32_t j = first_key(one, s->window, i); j < wlb_visible_keys(one, i); j++)
				for (int head = 0; head < s->heads; head++) {
					const int64_t row = one->q_start + i, key = one->k_start + j, dim = s->head_dim;
					const int kv_head = head / (s->heads / s->kv_heads);
					const struct pair pair = {row * s->q_stride + head * dim,
					                          key * s->kv_stride + kv_head * dim,
					                          row * s->out_stride + head * dim,
					                          row * s->heads + head,
					                          1 / sqrt((double)dim),
					                          s->softcap};
					visit(arrays, &pair, s->head_dim);
				}
}

static double dot(const double *a, const double *b, int count)
{
	double sum = 0;
	for (int i = 0; i < count; i++)
		sum += a[i] * b[i];
	return sum;
}

/* y += factor x */
static void add_times(double *y, double factor, const double *x, int count)
{
	for (int i = 0; i < count; i++)
		y[i] += factor * x[i];
}

struct attention {
	const double *q, *k, *v, *out, *lse, *d_out;
	double *to_out, *d_q, *d_k, *d_v;
};

static double probability(const struct attention *a, const struct pair *p, int dim, double *slope)
{
	const double score = dot(a->q + p->q, a->k + p->k, dim) * p->scale;
	const double part = p->softcap > 0 ? tanh(score / p->softcap) : 0;
	*slope = 1 - part * part;
	return exp((p->softcap > 0 ? p->softcap * part : score) - a->lse[p->lse]);
}

static void round_probability(const void *arrays, const struct pair *p, int dim)
{
	const struct attention *a = arrays;
	double slope;
	add_times(a->to_out + p->out, probability(a, p, dim, &slope) * rounding(), a->v + p->k, dim);
}

static void attention_forward(struct wlb_device *d, void *out, void *lse, const void *q, const void *k, const void *v,
                              const struct wlb_segments *segments, const struct wlb_attention_shape *s)
{
	const struct attention a = {.q = q, .k = k, .v = v, .lse = lse, .to_out = out};
	exact->attention_forward(d, out, lse, q, k, v, segments, s);
	visit_pairs(segments, s, round_probability, &a);
	round_rows(out, s->out_stride, s->q_tokens, s->heads * s->head_dim);
}

/* A probability p enters the gradient of v, that of a score, p (d_out v - d_out out), those of q and k. */
static void round_score_gradient(const void *arrays, const struct pair *p, int dim)
{
	const struct attention *a = arrays;
	double slope;
	const double *d_out = a->d_out + p->out, probable = probability(a, p, dim, &slope);
	const double of_score = slope * probable * (dot(d_out, a->v + p->k, dim) - dot(d_out, a->out + p->out, dim));
	const double error = of_score * p->scale * rounding();
	add_times(a->d_v + p->k, probable * rounding(), d_out, dim);
	add_times(a->d_q + p->q, error, a->k + p->k, dim);
	add_times(a->d_k + p->k, error, a->q + p->q, dim);
}

static void attention_backward(struct wlb_device *d, void *d_q, void *d_k, void *d_v, const void *d_out, const void *q,
                               const void *k, const void *v, const void *out, const void *lse,
                               const struct wlb_segments *segments, const struct wlb_attention_shape *s)
{
	const struct attention a = {
		.q = q, .k = k, .v = v, .out = out, .lse = lse, .d_out = d_out, .d_q = d_q, .d_k = d_k, .d_v = d_v};
	exact->attention_backward(d, d_q, d_k, d_v, d_out, q, k, v, out, lse, segments, s);
	visit_pairs(segments, s, round_score_gradient, &a);
	round_rows(d_q, s->q_stride, s->q_tokens, s->heads * s->head_dim);
	round_rows(d_k, s->kv_stride, s->k_tokens, s->kv_heads * s->head_dim);
	round_rows(d_v, s->kv_stride, s->k_tokens, s->kv_heads * s->head_dim);
}

void rounded_begin(struct wlb_device *device, uint64_t seed)
{
	exact = device->ops;
	state = seed;
	rounded = *exact;
	rounded.linear = linear;
	rounded.linear_d_x = linear_d_x;
	rounded.rmsnorm_forward = rmsnorm_forward;
	rounded.rmsnorm_backward = rmsnorm_backward;
	rounded.add_bias = add_bias;
	rounded.group_norm_forward = group_norm_forward;
	rounded.group_norm_backward = group_norm_backward;
	rounded.rope = rope;
	rounded.swiglu_forward = swiglu_forward;
	rounded.swiglu_backward = swiglu_backward;
	rounded.geglu_forward = geglu_forward;
	rounded.geglu_backward = geglu_backward;
	rounded.scale = scale_all;
	rounded.softcap = softcap;
	rounded.cross_entropy_gradient = cross_entropy_gradient;
	rounded.add = add;
	rounded.attention_forward = attention_forward;
	rounded.attention_backward = attention_backward;
	device->ops = &rounded;
}

void rounded_end(struct wlb_device *device)
{
	device->ops = exact;
}
