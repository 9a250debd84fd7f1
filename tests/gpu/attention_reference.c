/*
 * Attention by plain loops in double, and for each element a bound of what roundings may change in it.
 *
 * The bounds are those of a first-order analysis of the kernels (as in Higham, Accuracy and Stability of Numerical
 * Algorithms, 2002), composed by exp() so that products of errors are in them. With
 *   u  2^-8, the unit roundoff of bfloat16 (float32: 0, since nothing is rounded to it)
 *   e  2^-24, that of float32
 *   t  the error of one sum in a matrix product: e, or 2^-23 for tensor cores, which cut digits off
 * and for query i, with n keys, A = scale max over j of sum over d of |q_id k_jd|, and at most b = n / 8 + 1 blocks,
 * one more where the first key is within a block:
 *   - a score q k is wrong by dim t A; as an exponent in base 2 also by 11 e A: four roundings make scale log2(e), and
 *     are on a difference of 2 A; largest score times that is rounded, and the difference. 2^x is within 4 e.
 *   - a probability has that error, and that of b factors, each 3 e A + 5 e: eps = A (dim t + 11 e) + 4 e + b (3 e A +
 * 5 e)
 *   - out = sum(p v) / sum(p): the error of sum(p |v|), of which each p was rounded by u and n sums by t, and of
 * sum(p), n + 3 sums, then a division, a product and the rounding of the result.
 *   - lse = most scale + log(sum).
 *   - backward, p is exp(score - lse) with the error of lse; delta is dim sums with the error of out; dS = p (d_out v -
 *     delta) is rounded by u, and so is p; then as many sums as there are terms, the factor scale, the result's
 * rounding. Numbers below TINY may become 0.
 *   - a soft cap c changes a score's error by at most its slope, which is at most 1, and adds 8 e c; the slope 1 -
 *     tanh(score / c)^2 is wrong by 2 / c times the error of the score, and 4 e.
 */
#include "tests/gpu/attention_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double TINY = 1e-30;

/* A matrix in double, contiguous. */
struct values {
	double *at;
	int heads, dim;
};

static double *element_of(const struct values *m, int row, int head)
{
	return m->at + ((int64_t)row * m->heads + head) * m->dim;
}

struct reference {
	const struct attention_run *run;
	int dim;
	double u, e, t, scale, softcap;
	struct values q, k, v, d_out; /* inputs */
	/* Sums over segments and heads: the gradients, their bounds, and the sums of the terms' absolute values. */
	struct values d_k, d_v, d_k_bound, d_v_bound, d_k_size, d_v_size;
	double *k_terms;                           /* [rows of k, kv_heads]: how many terms d_k and d_v have */
	unsigned char *k_covered;                  /* [rows of k] */
	double *keys;                              /* [KEY_ARRAYS, rows of k]: of one query */
	unsigned char *written[ATTENTION_BUFFERS]; /* elements that were compared */
	double worst;
};

static struct values values_new(const struct attention_run *run, enum attention_matrix matrix, int is_filled)
{
	const struct attention_place place = attention_place_of(run->of, run->head_dim, matrix);
	struct values m = {calloc((size_t)place.rows * (size_t)place.heads * (size_t)run->head_dim, sizeof(double)),
	                   place.heads, run->head_dim};
	for (int row = 0; is_filled && row < place.rows; row++)
		for (int head = 0; head < place.heads; head++)
			for (int d = 0; d < run->head_dim; d++)
				element_of(&m, row, head)[d] =
					attention_element(run, run->before, matrix, row, head, d);
	return m;
}

static void compare(struct reference *r, double got, double want, double bound)
{
	const double ratio = got == want ? 0 : fabs(got - want) / (bound + TINY);
	if (isnan(ratio))
		r->worst = INFINITY;
	else if (ratio > r->worst)
		r->worst = ratio;
}

/* Compares one row of a head, whose bounds do not have the rounding of the result yet. */
static void compare_row(struct reference *r, enum attention_matrix matrix, int row, int head, const double *want,
                        const double *bound)
{
	const struct attention_place place = attention_place_of(r->run->of, r->dim, matrix);
	for (int d = 0; d < r->dim; d++) {
		const double got = attention_element(r->run, r->run->after, matrix, row, head, d);
		compare(r, got, want[d], bound[d] + r->u * (fabs(want[d]) + bound[d]));
		r->written[place.buffer][place.offset + row * place.stride + (int64_t)head * r->dim + d] = 1;
	}
}

/* -- one query of one head -- */

/* By key: probability, d_out . v, the latter with absolute values, and the slope of the soft cap. */
enum { KEY_P, KEY_DP, KEY_DP_ABS, KEY_SLOPE, KEY_ARRAYS };

struct query {
	const struct wlb_segment *segment;
	int row, head, kv_head;
	int first, end;  /* keys that it sees */
	int n;           /* how many */
	double a;        /* A */
	double lse, eps; /* eps of a probability in the forward pass */
	double lse_bound;
	double out[256], out_bound[256];
	double delta, delta_abs, delta_bound;
};

/* Of query i of the segment. */
static void set_first_key(struct query *query, int window, int i)
{
	const int first = window > 0 ? query->segment->q_offset + i + 1 - window : 0;
	query->first = first < 0 ? 0 : first < query->end ? first : query->end;
	query->n = query->end - query->first;
}

static double *keys_of(const struct reference *r, int array)
{
	return r->keys + (int64_t)array * r->run->of->k_rows;
}

static void weigh_keys(struct reference *r, struct query *query)
{
	const double *q = element_of(&r->q, query->row, query->head);
	const double *d_out = element_of(&r->d_out, query->row, query->head);
	double *p = keys_of(r, KEY_P), *dp = keys_of(r, KEY_DP), *dp_abs = keys_of(r, KEY_DP_ABS);
	double *slope = keys_of(r, KEY_SLOPE);
	double most = -INFINITY, sum = 0;
	query->a = 0;
	for (int j = query->first; j < query->end; j++) {
		const double *k = element_of(&r->k, query->segment->k_start + j, query->kv_head);
		const double *v = element_of(&r->v, query->segment->k_start + j, query->kv_head);
		double absolute = 0;
		p[j] = dp[j] = dp_abs[j] = 0;
		for (int d = 0; d < r->dim; d++) {
			p[j] += q[d] * k[d] * r->scale;
			absolute += fabs(q[d] * k[d]) * r->scale;
			dp[j] += d_out[d] * v[d];
			dp_abs[j] += fabs(d_out[d] * v[d]);
		}
		query->a = fmax(query->a, absolute);
		const double part = r->softcap > 0 ? tanh(p[j] / r->softcap) : 0;
		p[j] = r->softcap > 0 ? r->softcap * part : p[j];
		slope[j] = 1 - part * part;
		most = fmax(most, p[j]);
	}
	for (int j = query->first; j < query->end; j++)
		sum += exp(p[j] - most);
	query->lse = most + log(sum);
	for (int j = query->first; j < query->end; j++)
		p[j] = exp(p[j] - query->lse);
}

static double score_error(const struct reference *r, const struct query *query)
{
	return query->a * (r->dim * r->t + 11 * r->e) + 8 * r->e * r->softcap;
}

static void check_forward(struct reference *r, struct query *query)
{
	const double *p = keys_of(r, KEY_P), e = r->e, n = query->n, blocks = floor(n / 8) + (query->first > 0 ? 2 : 1);
	query->eps = score_error(r, query) + 4 * e + blocks * (3 * e * query->a + 5 * e);
	const double relative = (1 + r->u) * exp(2 * query->eps + n * r->t + (n + 3) * e + 4 * e) - 1;
	for (int d = 0; d < r->dim; d++) {
		double sum = 0, absolute = 0;
		for (int j = query->first; j < query->end; j++) {
			const double v = element_of(&r->v, query->segment->k_start + j, query->kv_head)[d];
			sum += p[j] * v;
			absolute += p[j] * fabs(v);
		}
		query->out[d] = sum;
		query->out_bound[d] = absolute * relative;
	}
	compare_row(r, MATRIX_OUT, query->row, query->head, query->out, query->out_bound);
	for (int d = 0; d < r->dim; d++)
		query->out_bound[d] += r->u * (fabs(query->out[d]) + query->out_bound[d]);
	query->lse_bound =
		query->n == 0 ? 0 : query->eps + (n + 3) * e + 8 * e * (fabs(query->lse) + query->a + log(n));
	const int64_t at = (int64_t)query->row * r->run->of->heads + query->head;
	compare(r, ((const float *)r->run->after[BUFFER_LSE])[at], query->lse, query->lse_bound);
	r->written[BUFFER_LSE][at] = 1;
}

static void sum_delta(struct reference *r, struct query *query)
{
	const double *d_out = element_of(&r->d_out, query->row, query->head);
	query->delta = query->delta_abs = query->delta_bound = 0;
	for (int d = 0; d < r->dim; d++) {
		const double largest = fabs(query->out[d]) + query->out_bound[d];
		query->delta += d_out[d] * query->out[d];
		query->delta_abs += fabs(d_out[d]) * largest;
		query->delta_bound += fabs(d_out[d]) * query->out_bound[d];
	}
	query->delta_bound += expm1((r->dim + 3) * r->e) * query->delta_abs;
}

/* Adds what this query gives to the gradients of the keys, and makes its own. */
static void check_backward(struct reference *r, struct query *query)
{
	const double *p = keys_of(r, KEY_P), *dp = keys_of(r, KEY_DP), *dp_abs = keys_of(r, KEY_DP_ABS), e = r->e;
	const double *slope = keys_of(r, KEY_SLOPE);
	const double *q = element_of(&r->q, query->row, query->head);
	const double *d_out = element_of(&r->d_out, query->row, query->head);
	const double p_error =
		query->n == 0 ? 0 : score_error(r, query) + 3 * e * fabs(query->lse) + 4 * e + query->lse_bound;
	const double slope_error = r->softcap > 0 ? 2 * score_error(r, query) / r->softcap + 4 * e : 0;
	double d_q[256] = {0}, d_q_bound[256] = {0};
	for (int j = query->first; j < query->end; j++) {
		const int row = query->segment->k_start + j;
		const double size = p[j] * (dp_abs[j] + query->delta_abs);
		const double ds = p[j] * (dp[j] - query->delta) * slope[j];
		double ds_bound =
			expm1(p_error + 3 * e + r->dim * r->t) * size + p[j] * exp(p_error) * query->delta_bound;
		ds_bound += slope_error * exp(p_error) * size;
		ds_bound += r->u * (fabs(ds) + ds_bound);
		const double p_bound = p[j] * ((1 + r->u) * exp(p_error) - 1);
		const double *k = element_of(&r->k, row, query->kv_head);
		r->k_terms[(int64_t)row * r->run->of->kv_heads + query->kv_head]++;
		for (int d = 0; d < r->dim; d++) {
			d_q[d] += r->scale * ds * k[d];
			d_q_bound[d] += r->scale * fabs(k[d]) * (ds_bound + query->n * r->t * (fabs(ds) + ds_bound));
			element_of(&r->d_k, row, query->kv_head)[d] += r->scale * ds * q[d];
			element_of(&r->d_v, row, query->kv_head)[d] += p[j] * d_out[d];
			/* The error of the sums follows when their number is known. */
			element_of(&r->d_k_bound, row, query->kv_head)[d] += r->scale * fabs(q[d]) * ds_bound;
			element_of(&r->d_v_bound, row, query->kv_head)[d] += fabs(d_out[d]) * p_bound;
			element_of(&r->d_k_size, row, query->kv_head)[d] +=
				r->scale * fabs(q[d]) * (fabs(ds) + ds_bound);
			element_of(&r->d_v_size, row, query->kv_head)[d] += fabs(d_out[d]) * (p[j] + p_bound);
		}
	}
	for (int d = 0; d < r->dim; d++)
		d_q_bound[d] += 5 * e * (fabs(d_q[d]) + d_q_bound[d]);
	compare_row(r, MATRIX_D_Q, query->row, query->head, d_q, d_q_bound);
}

/* -- all -- */

static void check_segment(struct reference *r, const struct wlb_segment *segment)
{
	const struct attention_case *of = r->run->of;
	memset(r->k_covered + segment->k_start, 1, (size_t)segment->k_count);
	for (int head = 0; head < of->heads; head++)
		for (int i = 0; i < segment->q_count; i++) {
			struct query query = {.segment = segment,
			                      .row = segment->q_start + i,
			                      .head = head,
			                      .kv_head = head / (of->heads / of->kv_heads),
			                      .end = wlb_visible_keys(segment, i)};
			set_first_key(&query, of->window, i);
			weigh_keys(r, &query);
			check_forward(r, &query);
			sum_delta(r, &query);
			check_backward(r, &query);
		}
}

static void check_keys(struct reference *r)
{
	const struct attention_case *of = r->run->of;
	for (int row = 0; row < of->k_rows; row++)
		for (int head = 0; head < of->kv_heads && r->k_covered[row]; head++) {
			const double terms = r->k_terms[(int64_t)row * of->kv_heads + head];
			double *const d_k_bound = element_of(&r->d_k_bound, row, head);
			double *const d_v_bound = element_of(&r->d_v_bound, row, head);
			for (int d = 0; d < r->dim; d++) {
				d_k_bound[d] += (terms * r->t + 5 * r->e) * element_of(&r->d_k_size, row, head)[d];
				d_v_bound[d] += terms * r->t * element_of(&r->d_v_size, row, head)[d];
			}
			compare_row(r, MATRIX_D_K, row, head, element_of(&r->d_k, row, head), d_k_bound);
			compare_row(r, MATRIX_D_V, row, head, element_of(&r->d_v, row, head), d_v_bound);
		}
}

/* All that was not compared is as it was; delta is scratch. */
static void check_unchanged(struct reference *r)
{
	for (int b = 0; b < BUFFER_DELTA; b++) {
		const size_t size = r->run->is_bf16 && b != BUFFER_LSE ? sizeof(uint16_t) : sizeof(float);
		for (size_t i = 0; i < r->run->bytes[b] / size; i++)
			if (!r->written[b][i] &&
			    memcmp(r->run->before[b] + i * size, r->run->after[b] + i * size, size) != 0)
				r->worst = INFINITY;
	}
}

static void release(struct reference *r)
{
	double *const all[] = {r->q.at,         r->k.at,         r->v.at,        r->d_out.at,    r->d_k.at,  r->d_v.at,
	                       r->d_k_bound.at, r->d_v_bound.at, r->d_k_size.at, r->d_v_size.at, r->k_terms, r->keys};
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		free(all[i]);
	for (int b = 0; b < ATTENTION_BUFFERS; b++)
		free(r->written[b]);
	free(r->k_covered);
}

double attention_case_error(const struct attention_run *run)
{
	const size_t k_rows = (size_t)run->of->k_rows;
	struct reference r = {
		.run = run,
		.dim = run->head_dim,
		.u = run->is_bf16 ? ldexp(1, -8) : 0,
		.e = ldexp(1, -24),
		.t = ldexp(1, run->is_bf16 ? -23 : -24),
		.scale = 1 / sqrt(run->head_dim),
		.softcap = run->of->softcap,
		.q = values_new(run, MATRIX_Q, 1),
		.k = values_new(run, MATRIX_K, 1),
		.v = values_new(run, MATRIX_V, 1),
		.d_out = values_new(run, MATRIX_D_OUT, 1),
		.d_k = values_new(run, MATRIX_D_K, 0),
		.d_v = values_new(run, MATRIX_D_V, 0),
		.d_k_bound = values_new(run, MATRIX_D_K, 0),
		.d_v_bound = values_new(run, MATRIX_D_V, 0),
		.d_k_size = values_new(run, MATRIX_D_K, 0),
		.d_v_size = values_new(run, MATRIX_D_V, 0),
		.k_terms = calloc(k_rows * (size_t)run->of->kv_heads, sizeof(double)),
		.k_covered = calloc(k_rows, 1),
		.keys = calloc(KEY_ARRAYS * k_rows, sizeof(double)),
	};
	for (int b = 0; b < ATTENTION_BUFFERS; b++)
		r.written[b] = calloc(run->bytes[b] + 1, 1);
	for (int s = 0; s < run->of->count; s++)
		check_segment(&r, &run->of->segments[s]);
	check_keys(&r);
	check_unchanged(&r);
	release(&r);
	return r.worst;
}
