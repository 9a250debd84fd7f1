/* Computes cross-entropy over a vocabulary of which each rank may hold a slice: first statistics, then the gradient. */
#include "kernels/cpu/operations.h"

#include <string.h>

/* The statistics of a row over one rank's slice of the vocabulary, as in statistics[tokens, 3]. */
struct row_statistics {
	real largest; /* the largest logit; -infinity where the slice is empty */
	real sum;     /* of exp(logit - largest) */
	real target;
};

static struct row_statistics row_statistics_of(const real *logits, int64_t target, int64_t count)
{
	struct row_statistics row = {.largest = wlb_max(-INFINITY, logits, count)};
	real largest = row.largest, sum = 0;
#pragma omp simd reduction(+ : sum)
	for (int64_t i = 0; i < count; i++)
		sum += wlb_exp(logits[i] - largest);
	row.sum = sum;
	if (target >= 0 && target < count)
		row.target = logits[target];
	return row;
}

void VARIANT(cross_entropy_statistics)(struct wlb_device *device, void *statistics_out, const void *logits_in,
                                       const int32_t *targets, int64_t tokens, int64_t first, int64_t count)
{
	struct row_statistics *statistics = statistics_out;
	const real *logits = logits_in;
	int threads = wlb_cpu_of(device)->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (tokens * count >= WLB_CPU_PARALLEL_ELEMENTS)
	for (int64_t t = 0; t < tokens; t++)
		statistics[t] = targets[t] < 0 ? (struct row_statistics){0}
		                               : row_statistics_of(logits + t * count, targets[t] - first, count);
}

/* The statistics of a row over the whole vocabulary. They are in double, so that combining slices
 * of float loses no precision, and the ranks are added in order. */
struct combined_statistics {
	double largest;
	double sum;
	double target;
};

static struct combined_statistics combine_statistics(const struct row_statistics *statistics, int parts, int64_t tokens)
{
	struct combined_statistics combined = {.largest = -INFINITY};
	for (int part = 0; part < parts; part++)
		if (statistics[part * tokens].largest > combined.largest)
			combined.largest = statistics[part * tokens].largest;
	for (int part = 0; part < parts; part++) {
		struct row_statistics row = statistics[part * tokens];
		combined.sum += row.sum * exp(row.largest - combined.largest);
		combined.target += row.target;
	}
	return combined;
}

/* Replaces a row's logits by their gradient. */
static void row_gradient(real *logits, const struct combined_statistics *combined, int64_t target, int64_t count,
                         double scale, double softcap)
{
	const real largest = (real)combined->largest, factor = (real)(scale / combined->sum);
	const real inverse = softcap > 0 ? (real)(1 / softcap) : 0;
	const int is_here = target >= 0 && target < count;
	const real slope_of_target = is_here ? wlb_softcap_slope(logits[target], inverse) : 0;
#pragma omp simd
	for (int64_t i = 0; i < count; i++)
		logits[i] = wlb_exp(logits[i] - largest) * factor * wlb_softcap_slope(logits[i], inverse);
	if (is_here)
		logits[target] -= (real)scale * slope_of_target;
}

/* All arrays and numbers of one call. */
struct gradient {
	real *logits;
	const struct row_statistics *statistics;
	int parts;
	const int32_t *targets;
	int64_t tokens, first, count;
	double scale, softcap;
};

/* Replaces the logits of a row by their gradient; returns the loss of the row. */
static double loss_and_gradient(const struct gradient *g, int64_t t)
{
	real *logits = g->logits + t * g->count;
	if (g->targets[t] < 0) {
		memset(logits, 0, (size_t)g->count * sizeof(real));
		return 0;
	}
	struct combined_statistics combined = combine_statistics(g->statistics + t, g->parts, g->tokens);
	row_gradient(logits, &combined, g->targets[t] - g->first, g->count, g->scale, g->softcap);
	return log(combined.sum) + combined.largest - combined.target;
}

void VARIANT(cross_entropy_gradient)(struct wlb_device *device, double *loss_sum, void *logits, const void *statistics,
                                     int parts, const int32_t *targets, int64_t tokens, int64_t first, int64_t count,
                                     double scale, double softcap)
{
	const struct gradient g = {logits, statistics, parts, targets, tokens, first, count, scale, softcap};
	int threads = wlb_cpu_of(device)->threads;
	double *losses = wlb_cpu_scratch(device, (size_t)tokens * sizeof(*losses));
	if (losses == NULL)
		return;
#pragma omp parallel for schedule(static) num_threads(threads) if (tokens * count >= WLB_CPU_PARALLEL_ELEMENTS)
	for (int64_t t = 0; t < tokens; t++)
		losses[t] = loss_and_gradient(&g, t);
	for (int64_t t = 0; loss_sum != NULL && t < tokens; t++)
		*loss_sum += losses[t];
}
