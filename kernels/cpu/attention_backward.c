/* Computes the gradients of attention, tile by tile. */
#include "kernels/cpu/attention.h"

#include <string.h>

/* The memory of one thread. */
struct backward_tile {
	real *probabilities; /* [TILE_QUERIES, TILE_KEYS] softmax */
	real *scores;        /* [TILE_QUERIES, TILE_KEYS] gradient of the scores */
	real *delta;         /* [TILE_QUERIES] d_out . out */
};

static const size_t BACKWARD_TILE_REALS = 2 * TILE_SCORES + TILE_QUERIES;

/* All arrays of one call, so that the functions below can pass them on together. */
struct backward {
	real *d_q, *d_k, *d_v;
	const real *d_out, *q, *k, *v, *out, *lse;
	struct geometry g;
};

static real dot(const real *a, const real *b, int n)
{
	real sum = 0;
#pragma omp simd reduction(+ : sum)
	for (int i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

/* probabilities = exp(probabilities - lse), scores = probabilities (scores - delta), times the derivative of the soft
 * cap c where 1 / c is not 0; both 0 where masked. */
static void row_gradient(real *probabilities, real *scores, struct visible visible, int keys, real lse, real delta,
                         real inverse_cap)
{
#pragma omp simd
	for (int j = visible.low; j < visible.high; j++) {
		real slope = wlb_softcap_slope(probabilities[j], inverse_cap);
		probabilities[j] = wlb_exp(probabilities[j] - lse);
		scores[j] = probabilities[j] * (scores[j] - delta) * slope;
	}
	clear_masked(probabilities, visible, keys);
	clear_masked(scores, visible, keys);
}

/* The queries [first, first + queries) of a segment in one head, against all keys they see. The scores are
 * recomputed from q, k and lse: keeping them would take tokens^2 memory. */
static void backward_queries(const struct backward *b, const struct wlb_segment *segment, int first, int queries,
                             int head, const struct backward_tile *tile)
{
	const struct geometry *g = &b->g;
	int64_t row = segment->q_start + first;
	int64_t column = (int64_t)head * g->head_dim;
	int64_t q_at = row * g->q_stride + column, out_at = row * g->out_stride + column;
	const real *q = b->q + q_at, *d_out = b->d_out + out_at, *out = b->out + out_at;
	const real *lse = b->lse + row * g->lse_stride + head;
	real *d_q = b->d_q + q_at;
	for (int i = 0; i < queries; i++) {
		tile->delta[i] = dot(d_out + i * g->out_stride, out + i * g->out_stride, g->head_dim);
		memset(d_q + i * g->q_stride, 0, (size_t)g->head_dim * sizeof(real));
	}
	int end = visible_keys(segment, first + queries - 1);
	for (int start = first_visible_key(segment, g->window, first); start < end; start += TILE_KEYS) {
		int keys = least(TILE_KEYS, end - start);
		int64_t k_at =
			(segment->k_start + (int64_t)start) * g->kv_stride + (int64_t)(head / g->group) * g->head_dim;
		multiply(g, NOT_TRANSPOSED, TRANSPOSED, queries, keys, g->head_dim, g->scale, q, g->q_stride,
		         b->k + k_at, g->kv_stride, 0, tile->probabilities, TILE_KEYS);
		cap_scores(g, tile->probabilities, queries, keys);
		multiply(g, NOT_TRANSPOSED, TRANSPOSED, queries, keys, g->head_dim, 1, d_out, g->out_stride,
		         b->v + k_at, g->kv_stride, 0, tile->scores, TILE_KEYS);
		for (int i = 0; i < queries; i++)
			row_gradient(tile->probabilities + i * TILE_KEYS, tile->scores + i * TILE_KEYS,
			             visible_scores(segment, g->window, first + i, start, keys), keys,
			             lse[i * g->lse_stride], tile->delta[i], g->softcap > 0 ? 1 / g->softcap : 0);
		multiply(g, TRANSPOSED, NOT_TRANSPOSED, keys, g->head_dim, queries, 1, tile->probabilities, TILE_KEYS,
		         d_out, g->out_stride, 1, b->d_v + k_at, g->kv_stride);
		multiply(g, NOT_TRANSPOSED, NOT_TRANSPOSED, queries, g->head_dim, keys, g->scale, tile->scores,
		         TILE_KEYS, b->k + k_at, g->kv_stride, 1, d_q, g->q_stride);
		multiply(g, TRANSPOSED, NOT_TRANSPOSED, keys, g->head_dim, queries, g->scale, tile->scores, TILE_KEYS,
		         q, g->q_stride, 1, b->d_k + k_at, g->kv_stride);
	}
}

/* Sets the gradients of the segments' keys to 0 in one head. */
static void clear_keys(const struct backward *b, const struct wlb_segment *segments, int count, int kv_head)
{
	const struct geometry *g = &b->g;
	for (const struct wlb_segment *segment = segments; segment < segments + count; segment++)
		for (int64_t key = segment->k_start; key < (int64_t)segment->k_start + segment->k_count; key++) {
			int64_t offset = key * g->kv_stride + (int64_t)kv_head * g->head_dim;
			memset(b->d_k + offset, 0, (size_t)g->head_dim * sizeof(real));
			memset(b->d_v + offset, 0, (size_t)g->head_dim * sizeof(real));
		}
}

static void backward_segment(const struct backward *b, const struct wlb_segment *segment, int kv_head,
                             const struct backward_tile *tile)
{
	for (int head = kv_head * b->g.group; head < (kv_head + 1) * b->g.group; head++)
		for (int first = 0; first < segment->q_count; first += TILE_QUERIES)
			backward_queries(b, segment, first, least(TILE_QUERIES, segment->q_count - first), head, tile);
}

/* One thread adds to the gradients of the keys of one group and head, in the order of segments, heads and queries. So
 * no two threads add to one sum, and its order is always the same. */
void VARIANT(attention_backward)(struct wlb_device *device, void *d_q, void *d_k, void *d_v, const void *d_out,
                                 const void *q, const void *k, const void *v, const void *out, const void *lse,
                                 const struct wlb_segments *segments, const struct wlb_attention_shape *shape)
{
	const struct backward b = {d_q, d_k, d_v, d_out, q, k, v, out, lse, geometry_of(device, shape)};
	int threads = wlb_cpu_of(device)->threads;
	size_t tile_bytes = (size_t)threads * BACKWARD_TILE_REALS * sizeof(real);
	real *memory = wlb_cpu_scratch(device, tile_bytes + ((size_t)segments->count + 1) * sizeof(int32_t));
	if (memory == NULL)
		return;
	int32_t *starts = (int32_t *)((char *)memory + tile_bytes);
	int groups = wlb_cpu_key_groups(starts, segments->segments, segments->count);
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (use_threads(segments, shape))
	for (int item = 0; item < groups * shape->kv_heads; item++) {
		real *mine = memory + (size_t)omp_get_thread_num() * BACKWARD_TILE_REALS;
		struct backward_tile tile = {mine, mine + TILE_SCORES, mine + 2 * TILE_SCORES};
		int group = item / shape->kv_heads, kv_head = item % shape->kv_heads;
		clear_keys(&b, segments->segments + starts[group], starts[group + 1] - starts[group], kv_head);
		for (int s = starts[group]; s < starts[group + 1]; s++)
			backward_segment(&b, &segments->segments[s], kv_head, &tile);
	}
}
