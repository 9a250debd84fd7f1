/* Attention against a slow version that writes every score down, and its gradients against central differences. */
#include "tests/unit/kernels/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sizes {
	int64_t q_tokens, k_tokens;
	int heads, kv_heads, head_dim;
};

struct example {
	const char *name;
	struct wlb_segment segments[4];
	int count;
	struct sizes sizes;
	int window;
};

/* Sizes around the tiles (64 queries, 256 keys), documents next to each other, queries that are the second half of a
 * document, queries before their keys (they see nothing), keys cut short, two segments on the same keys; windows of one
 * key, shorter and longer than tiles and documents, and before which all keys of a segment are. */
static const struct example EXAMPLES[] = {
	{"one token", {{0, 1, 0, 1, 0}}, 1, {1, 1, 1, 1, 2}, 0},
	{"odd sizes", {{0, 17, 0, 17, 0}}, 1, {17, 17, 3, 3, 6}, 0},
	{"many tiles", {{0, 257, 0, 257, 0}}, 1, {257, 257, 2, 1, 16}, 0},
	{"keys over several tiles", {{0, 40, 0, 600, 560}}, 1, {40, 600, 2, 2, 8}, 0},
	{"packed documents", {{0, 3, 0, 3, 0}, {3, 1, 3, 1, 0}, {4, 65, 4, 65, 0}}, 3, {70, 70, 4, 2, 8}, 0},
	{"second half", {{0, 70, 0, 140, 70}}, 1, {70, 140, 2, 2, 8}, 0},
	{"keys cut short", {{0, 20, 5, 12, 3}}, 1, {20, 20, 2, 2, 4}, 0},
	{"one key short", {{0, 9, 2, 8, 0}}, 1, {9, 12, 2, 2, 4}, 0},
	{"before its keys", {{0, 9, 0, 9, -4}}, 1, {9, 9, 2, 1, 4}, 0},
	{"no keys, no queries", {{0, 2, 0, 0, 0}, {2, 0, 0, 3, 0}}, 2, {2, 3, 1, 1, 4}, 0},
	{"shared keys", {{0, 5, 0, 5, 0}, {5, 5, 0, 20, 15}, {10, 3, 20, 3, 0}}, 3, {13, 23, 4, 2, 4}, 0},
	{"shared keys, out of order", {{0, 4, 20, 4, 0}, {4, 5, 0, 20, 15}, {9, 5, 0, 5, 0}}, 3, {14, 24, 2, 2, 4}, 0},
	{"a gap", {{2, 3, 4, 3, 0}}, 1, {8, 8, 2, 2, 4}, 0},
	{"a window of its own key", {{0, 5, 0, 5, 0}, {5, 66, 5, 66, 0}}, 2, {71, 71, 2, 1, 4}, 1},
	{"a window within a tile", {{0, 70, 0, 70, 0}, {70, 3, 70, 3, 0}}, 2, {73, 73, 4, 2, 4}, 5},
	{"a window over tiles of keys", {{0, 130, 0, 600, 470}}, 1, {130, 600, 1, 1, 4}, 300},
	{"shared keys within a window",
         {{0, 5, 0, 5, 0}, {5, 5, 0, 20, 15}, {10, 3, 20, 3, 0}},
         3,
         {13, 23, 4, 2, 4},
         4},
	{"a window after all keys", {{0, 20, 5, 12, 3}}, 1, {20, 20, 2, 2, 4}, 6},
	{"a window as long as the document", {{0, 9, 0, 9, 0}}, 1, {9, 9, 2, 2, 4}, 9},
};
enum { EXAMPLE_COUNT = sizeof(EXAMPLES) / sizeof(EXAMPLES[0]) };

/* An example with rows of a stride that is wider than they are by 0 or more. */
struct strided {
	const char *name;
	struct wlb_segments segments;
	struct wlb_attention_shape shape;
};

enum { WIDEST = 3 };

/* Those that are wider have a soft cap, too. */
static struct strided strided_of(const struct example *e, int wider)
{
	const struct sizes *s = &e->sizes;
	int64_t q_width = s->heads * s->head_dim, kv_width = s->kv_heads * s->head_dim;
	return (struct strided){e->name,
	                        {.segments = e->segments, .count = e->count, .max_q = 257, .max_k = 257},
	                        {s->q_tokens, s->k_tokens, s->heads, s->kv_heads, s->head_dim, q_width + wider,
	                         kv_width + 2 * wider, q_width + 3 * wider, e->window, wider > 0 ? 0.5 : 0}};
}

static size_t q_numbers(const struct strided *e)
{
	return (size_t)(e->shape.q_tokens * e->shape.q_stride);
}

static size_t k_numbers(const struct strided *e)
{
	return (size_t)(e->shape.k_tokens * e->shape.kv_stride);
}

static size_t out_numbers(const struct strided *e)
{
	return (size_t)(e->shape.q_tokens * e->shape.out_stride);
}

static size_t lse_numbers(const struct strided *e)
{
	return (size_t)e->shape.q_tokens * (size_t)e->shape.heads;
}

/* One query of one head by the definition: it sees the keys [first, keys). */
static void reference_query(double *out, double *lse, const double *q, const double *k, const double *v, int first,
                            int keys, const struct wlb_attention_shape *shape)
{
	double sum = 0;
	memset(out, 0, (size_t)shape->head_dim * sizeof(*out));
	for (int j = first; j < keys; j++) {
		size_t at = (size_t)(j * shape->kv_stride);
		double score = weighted_sum(q, k + at, (size_t)shape->head_dim) / sqrt(shape->head_dim);
		double weight = exp(shape->softcap > 0 ? shape->softcap * tanh(score / shape->softcap) : score);
		sum += weight;
		for (int d = 0; d < shape->head_dim; d++)
			out[d] += weight * v[at + (size_t)d];
	}
	for (int d = 0; d < shape->head_dim && keys > first; d++)
		out[d] /= sum;
	*lse = log(sum);
}

static void reference_forward(double *out, double *lse, const double *q, const double *k, const double *v,
                              const struct strided *e)
{
	const struct wlb_attention_shape *shape = &e->shape;
	int group = shape->heads / shape->kv_heads, dim = shape->head_dim;
	for (int s = 0; s < e->segments.count; s++)
		for (int i = 0; i < e->segments.segments[s].q_count; i++)
			for (int head = 0; head < shape->heads; head++) {
				const struct wlb_segment *segment = &e->segments.segments[s];
				int64_t keys = segment->q_offset + i + 1, row = segment->q_start + i;
				int64_t first = shape->window > 0 && keys > shape->window ? keys - shape->window : 0;
				int64_t key = segment->k_start * shape->kv_stride + head / group * dim;
				keys = keys > segment->k_count ? segment->k_count : keys;
				reference_query(out + row * shape->out_stride + head * dim,
				                lse + row * shape->heads + head, q + row * shape->q_stride + head * dim,
				                k + key, v + key, (int)first, (int)keys, shape);
			}
}

static void check_one_forward(struct wlb_device *device, const struct strided *e)
{
	double *q = random_numbers(q_numbers(e), 1), *k = random_numbers(k_numbers(e), 2);
	double *v = random_numbers(k_numbers(e), 3);
	double *want = random_numbers(out_numbers(e), 4), *want_lse = random_numbers(lse_numbers(e), 5);
	void *out = to_array(device, want, out_numbers(e)), *lse = to_array(device, want_lse, lse_numbers(e));
	void *qa = to_array(device, q, q_numbers(e)), *ka = to_array(device, k, k_numbers(e));
	void *va = to_array(device, v, k_numbers(e));
	reference_forward(want, want_lse, q, k, v, e);
	device->ops->attention_forward(device, out, lse, qa, ka, va, &e->segments, &e->shape);
	check_close(device, e->name, out, want, out_numbers(e), 2e-6);
	check_close(device, e->name, lse, want_lse, lse_numbers(e), 2e-6);
	RELEASE(device, out, lse, qa, ka, va);
	free(q), free(k), free(v), free(want), free(want_lse);
}

static void check_forward(struct wlb_device *device)
{
	for (size_t n = 0; n < EXAMPLE_COUNT; n++)
		for (int wider = 0; wider <= WIDEST; wider += WIDEST) {
			const struct strided e = strided_of(&EXAMPLES[n], wider);
			check_one_forward(device, &e);
		}
}

static void test_forward(void **state)
{
	(void)state;
	for_each_device(check_forward);
}

/* All of one example in float64, and what the loss reads. */
struct run {
	struct wlb_device *device;
	const struct strided *e;
	double *q, *k, *v, *out, *lse, *weights;
	double *d_q, *d_k, *d_v;
};

static struct run open_run(struct wlb_device *device, const struct strided *e)
{
	size_t nq = q_numbers(e), nk = k_numbers(e);
	struct run r = {.device = device, .e = e};
	r.q = random_numbers(nq, 1), r.k = random_numbers(nk, 2), r.v = random_numbers(nk, 3);
	r.weights = random_numbers(out_numbers(e), 6);
	r.out = calloc(out_numbers(e) + 1, sizeof(double)), r.lse = calloc(lse_numbers(e) + 1, sizeof(double));
	r.d_q = random_numbers(nq, 7), r.d_k = random_numbers(nk, 8), r.d_v = random_numbers(nk, 9);
	return r;
}

static void close_run(struct run *r)
{
	free(r->q), free(r->k), free(r->v), free(r->out), free(r->lse), free(r->weights);
	free(r->d_q), free(r->d_k), free(r->d_v);
}

static double run_loss(void *context)
{
	struct run *r = context;
	r->device->ops->attention_forward(r->device, r->out, r->lse, r->q, r->k, r->v, &r->e->segments, &r->e->shape);
	return weighted_sum(r->out, r->weights, out_numbers(r->e));
}

static int is_query(const struct wlb_segment *segment, int64_t row)
{
	return row >= segment->q_start && row < segment->q_start + segment->q_count;
}

static int is_key(const struct wlb_segment *segment, int64_t row)
{
	return row >= segment->k_start && row < segment->k_start + segment->k_count;
}

/* Only the rows of queries or keys are overwritten, whatever was there, and not what is between them: that is set to 0,
 * its gradient. */
static void remove_uncovered(const struct run *r, double *gradient, uint64_t seed, int64_t rows, int64_t stride,
                             int64_t width, int (*covers)(const struct wlb_segment *, int64_t))
{
	double *before = random_numbers((size_t)(rows * stride), seed);
	for (int64_t row = 0; row < rows; row++) {
		int covered = 0;
		for (int s = 0; s < r->e->segments.count; s++)
			covered |= covers(&r->e->segments.segments[s], row);
		for (int64_t i = row * stride + (covered ? width : 0); i < (row + 1) * stride; i++) {
			assert_true(gradient[i] == before[i]);
			gradient[i] = 0;
		}
	}
	free(before);
}

static void check_backward(struct wlb_device *device, const struct strided *e)
{
	const struct wlb_attention_shape *s = &e->shape;
	int64_t q_width = s->heads * s->head_dim, kv_width = s->kv_heads * s->head_dim;
	struct run r = open_run(device, e);
	run_loss(&r);
	device->ops->attention_backward(device, r.d_q, r.d_k, r.d_v, r.weights, r.q, r.k, r.v, r.out, r.lse,
	                                &e->segments, s);
	remove_uncovered(&r, r.d_q, 7, s->q_tokens, s->q_stride, q_width, is_query);
	remove_uncovered(&r, r.d_k, 8, s->k_tokens, s->kv_stride, kv_width, is_key);
	remove_uncovered(&r, r.d_v, 9, s->k_tokens, s->kv_stride, kv_width, is_key);
	check_differences("d_q", &(struct difference_check){run_loss, &r, r.q, r.d_q, q_numbers(e)});
	check_differences("d_k", &(struct difference_check){run_loss, &r, r.k, r.d_k, k_numbers(e)});
	check_differences("d_v", &(struct difference_check){run_loss, &r, r.v, r.d_v, k_numbers(e)});
	close_run(&r);
}

static void test_backward(void **state)
{
	(void)state;
	struct wlb_device *device = open_double(2);
	for (size_t n = 0; n < EXAMPLE_COUNT; n++)
		for (int wider = 0; wider <= WIDEST; wider += WIDEST) {
			const struct strided e = strided_of(&EXAMPLES[n], wider);
			check_backward(device, &e);
		}
	wlb_device_close(device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forward),
		cmocka_unit_test(test_backward),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
