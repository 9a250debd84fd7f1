/* Computes attention, tile by tile. */
#include "kernels/cpu/attention.h"

#include <string.h>

/* One thread's memory: a tile of scores, the queries' outputs so far, and their running softmax. */
struct forward_tile {
	real *scores; /* [TILE_QUERIES, TILE_KEYS] */
	real *out;    /* [TILE_QUERIES, head_dim], not yet divided by sum */
	real *most;   /* [TILE_QUERIES] largest score so far */
	real *sum;    /* [TILE_QUERIES] sum of exp(score - most) so far */
};

static size_t forward_tile_reals(int head_dim)
{
	return TILE_SCORES + (size_t)TILE_QUERIES * (size_t)(head_dim + 2);
}

static struct forward_tile forward_tile_at(real *memory, int head_dim)
{
	real *out = memory + TILE_SCORES;
	real *most = out + (size_t)TILE_QUERIES * (size_t)head_dim;
	return (struct forward_tile){memory, out, most, most + TILE_QUERIES};
}

/* Turns the visible scores of a row into exp(score - most), the masked rest into 0, and rescales what the row has
 * gathered where its largest score has grown. */
static void row_softmax(real *scores, struct visible visible, int keys, real *most, real *sum, real *out, int head_dim)
{
	clear_masked(scores, visible, keys);
	if (visible.high == 0)
		return;
	real peak = wlb_max(*most, scores + visible.low, visible.high - visible.low);
	if (peak > *most) {
		real shrink = wlb_exp(*most - peak);
		*sum *= shrink;
#pragma omp simd
		for (int d = 0; d < head_dim; d++)
			out[d] *= shrink;
		*most = peak;
	}
	real total = 0;
#pragma omp simd reduction(+ : total)
	for (int j = visible.low; j < visible.high; j++) {
		scores[j] = wlb_exp(scores[j] - peak);
		total += scores[j];
	}
	*sum += total;
}

/* out = gathered / sum, lse = most + log(sum). A query that sees no key gets 0 and -infinity. */
static void store_row(real *out, real *lse, const real *gathered, real most, real sum, int head_dim)
{
	real inverse = sum > 0 ? 1 / sum : sum;
#pragma omp simd
	for (int d = 0; d < head_dim; d++)
		out[d] = gathered[d] * inverse;
	*lse = most + log(sum);
}

/* The queries [first, first + queries) of a segment in one head; q, out and lse point at the first of them, k and v
 * at the segment's first key. */
static void forward_queries(real *out, real *lse, const real *q, const real *k, const real *v,
                            const struct wlb_segment *segment, int first, int queries, const struct geometry *g,
                            const struct forward_tile *tile)
{
	for (int i = 0; i < queries; i++) {
		tile->most[i] = -INFINITY;
		tile->sum[i] = 0;
	}
	memset(tile->out, 0, (size_t)queries * (size_t)g->head_dim * sizeof(real));
	int end = visible_keys(segment, first + queries - 1);
	for (int start = first_visible_key(segment, g->window, first); start < end; start += TILE_KEYS) {
		int keys = least(TILE_KEYS, end - start);
		multiply(g, NOT_TRANSPOSED, TRANSPOSED, queries, keys, g->head_dim, g->scale, q, g->q_stride,
		         k + start * g->kv_stride, g->kv_stride, 0, tile->scores, TILE_KEYS);
		cap_scores(g, tile->scores, queries, keys);
		for (int i = 0; i < queries; i++)
			row_softmax(tile->scores + i * TILE_KEYS,
			            visible_scores(segment, g->window, first + i, start, keys), keys, &tile->most[i],
			            &tile->sum[i], tile->out + (int64_t)i * g->head_dim, g->head_dim);
		multiply(g, NOT_TRANSPOSED, NOT_TRANSPOSED, queries, g->head_dim, keys, 1, tile->scores, TILE_KEYS,
		         v + start * g->kv_stride, g->kv_stride, 1, tile->out, g->head_dim);
	}
	for (int i = 0; i < queries; i++)
		store_row(out + i * g->out_stride, lse + i * g->lse_stride, tile->out + (int64_t)i * g->head_dim,
		          tile->most[i], tile->sum[i], g->head_dim);
}

void VARIANT(attention_forward)(struct wlb_device *device, void *out_out, void *lse_out, const void *q_in,
                                const void *k_in, const void *v_in, const struct wlb_segments *segments,
                                const struct wlb_attention_shape *shape)
{
	real *out = out_out, *lse = lse_out;
	const real *q = q_in, *k = k_in, *v = v_in;
	const struct geometry g = geometry_of(device, shape);
	int threads = wlb_cpu_of(device)->threads;
	size_t reals = forward_tile_reals(g.head_dim);
	real *memory = wlb_cpu_scratch(device, (size_t)threads * reals * sizeof(real));
	if (memory == NULL)
		return;
#pragma omp parallel num_threads(threads) if (use_threads(segments, shape))
	{
		struct forward_tile tile = forward_tile_at(memory + (size_t)omp_get_thread_num() * reals, g.head_dim);
		for (int s = 0; s < segments->count; s++) {
			const struct wlb_segment *segment = &segments->segments[s];
			int blocks = (segment->q_count + TILE_QUERIES - 1) / TILE_QUERIES;
			/* Last queries first: they see the most keys, and the short ones fill the gaps at the end. */
#pragma omp for schedule(dynamic, 1) nowait
			for (int item = 0; item < blocks * shape->heads; item++) {
				int first = (blocks - 1 - item / shape->heads) * TILE_QUERIES;
				int head = item % shape->heads;
				int64_t row = segment->q_start + first;
				int64_t column = (int64_t)head * g.head_dim;
				int64_t k_at = segment->k_start * g.kv_stride + (int64_t)(head / g.group) * g.head_dim;
				forward_queries(out + row * g.out_stride + column, lse + row * g.lse_stride + head,
				                q + row * g.q_stride + column, k + k_at, v + k_at, segment, first,
				                least(TILE_QUERIES, segment->q_count - first), &g, &tile);
			}
		}
	}
}
