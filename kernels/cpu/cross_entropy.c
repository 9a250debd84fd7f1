#include "kernels/cpu/operations.h"

#include <string.h>

/* Replaces one row of logits by its gradient; returns its loss. */
static double row_loss(real *logits, int32_t target, int64_t vocab, real scale)
{
	real most = wlb_max(logits[0], logits, vocab);
	real target_logit = logits[target];
	real sum = 0;
#pragma omp simd reduction(+ : sum)
	for (int64_t i = 0; i < vocab; i++) {
		logits[i] = wlb_exp(logits[i] - most);
		sum += logits[i];
	}
	real factor = scale / sum;
#pragma omp simd
	for (int64_t i = 0; i < vocab; i++)
		logits[i] *= factor;
	logits[target] -= scale;
	return log((double)sum) + (double)most - (double)target_logit;
}

static double rows_loss(struct wlb_device *device, real *logits, const int32_t *targets, struct wlb_range rows,
                        int64_t vocab, real scale)
{
	double loss = 0;
	for (int64_t t = rows.begin; t < rows.end; t++) {
		if (targets[t] < 0)
			memset(logits + t * vocab, 0, (size_t)vocab * sizeof(real));
		else if (targets[t] < vocab)
			loss += row_loss(logits + t * vocab, targets[t], vocab, scale);
		else
			wlb_cpu_fail(device, "cross_entropy: target %d at row %lld is not below the vocabulary's %lld",
			             (int)targets[t], (long long)t, (long long)vocab);
	}
	return loss;
}

void VARIANT(cross_entropy)(struct wlb_device *device, double *loss_sum, void *logits_out, const int32_t *targets,
                            int64_t tokens, int64_t vocab, double scale)
{
	real *logits = logits_out;
	int parts = wlb_cpu_of(device)->threads;
	double *partial = wlb_cpu_scratch(device, (size_t)parts * sizeof(*partial));
	if (partial == NULL)
		return;
#pragma omp parallel for schedule(static, 1) num_threads(parts) if (tokens * vocab >= WLB_CPU_PARALLEL_ELEMENTS)
	for (int part = 0; part < parts; part++)
		partial[part] =
			rows_loss(device, logits, targets, wlb_cpu_part(tokens, 1, part, parts), vocab, (real)scale);
	for (int part = 0; part < parts; part++)
		*loss_sum += partial[part];
}
