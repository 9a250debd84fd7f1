#include "kernels/cpu/operations.h"

#include <string.h>

/* One rank's share of a row's softmax, as in statistics[tokens, 3]. */
struct share {
	real most; /* the largest logit; -infinity where the slice is empty */
	real sum;  /* of exp(logit - most) */
	real target;
};

static struct share row_share(const real *logits, int64_t target, int64_t count)
{
	struct share share = {.most = wlb_max(-INFINITY, logits, count)};
	real most = share.most, sum = 0;
#pragma omp simd reduction(+ : sum)
	for (int64_t i = 0; i < count; i++)
		sum += wlb_exp(logits[i] - most);
	share.sum = sum;
	if (target >= 0 && target < count)
		share.target = logits[target];
	return share;
}

void VARIANT(cross_entropy_statistics)(struct wlb_device *device, void *statistics_out, const void *logits_in,
                                       const int32_t *targets, int64_t tokens, int64_t first, int64_t count)
{
	struct share *statistics = statistics_out;
	const real *logits = logits_in;
	int threads = wlb_cpu_of(device)->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (tokens * count >= WLB_CPU_PARALLEL_ELEMENTS)
	for (int64_t t = 0; t < tokens; t++)
		statistics[t] =
			targets[t] < 0 ? (struct share){0} : row_share(logits + t * count, targets[t] - first, count);
}

/* A row's softmax over the whole vocabulary. In double, so that a float loses nothing when its slices are put together;
 * the shares are added in rank order. */
struct whole {
	double most;
	double sum;
	double target;
};

static struct whole combine_shares(const struct share *shares, int parts, int64_t tokens)
{
	struct whole whole = {.most = -INFINITY};
	for (int part = 0; part < parts; part++)
		if (shares[part * tokens].most > whole.most)
			whole.most = shares[part * tokens].most;
	for (int part = 0; part < parts; part++) {
		struct share share = shares[part * tokens];
		whole.sum += share.sum * exp(share.most - whole.most);
		whole.target += share.target;
	}
	return whole;
}

/* Replaces a row's logits by their gradient. */
static void row_gradient(real *logits, const struct whole *whole, int64_t target, int64_t count, double scale)
{
	const real most = (real)whole->most, factor = (real)(scale / whole->sum);
#pragma omp simd
	for (int64_t i = 0; i < count; i++)
		logits[i] = wlb_exp(logits[i] - most) * factor;
	if (target >= 0 && target < count)
		logits[target] -= (real)scale;
}

/* All arrays and numbers of one call. */
struct gradient {
	real *logits;
	const struct share *statistics;
	int parts;
	const int32_t *targets;
	int64_t tokens, first, count;
	double scale;
};

/* Returns the summed loss of the rows. */
static double rows_gradient(const struct gradient *g, struct wlb_range rows)
{
	double loss = 0;
	for (int64_t t = rows.begin; t < rows.end; t++) {
		real *logits = g->logits + t * g->count;
		if (g->targets[t] < 0) {
			memset(logits, 0, (size_t)g->count * sizeof(real));
			continue;
		}
		struct whole whole = combine_shares(g->statistics + t, g->parts, g->tokens);
		row_gradient(logits, &whole, g->targets[t] - g->first, g->count, g->scale);
		loss += log(whole.sum) + whole.most - whole.target;
	}
	return loss;
}

void VARIANT(cross_entropy_gradient)(struct wlb_device *device, double *loss_sum, void *logits, const void *statistics,
                                     int parts, const int32_t *targets, int64_t tokens, int64_t first, int64_t count,
                                     double scale)
{
	const struct gradient g = {logits, statistics, parts, targets, tokens, first, count, scale};
	int ranges = wlb_cpu_of(device)->threads;
	double *partial = wlb_cpu_scratch(device, (size_t)ranges * sizeof(*partial));
	if (partial == NULL)
		return;
#pragma omp parallel for schedule(static, 1) num_threads(ranges) if (tokens * count >= WLB_CPU_PARALLEL_ELEMENTS)
	for (int range = 0; range < ranges; range++)
		partial[range] = rows_gradient(&g, wlb_cpu_part(tokens, 1, range, ranges));
	for (int range = 0; loss_sum != NULL && range < ranges; range++)
		*loss_sum += partial[range];
}
