#include "tests/cuda_host/sgemm.h"

#include <stdio.h>
#include <stdlib.h>

#include "kernels/cpu/cpu.h"

static const struct wlb_cpu_blas *blas(void)
{
	static struct wlb_cpu_blas loaded;
	struct wlb_error error;
	if (loaded.sgemm == NULL && wlb_cpu_load_blas(&loaded, &error) != 0) {
		fprintf(stderr, "cuda_host: %s\n", error.message);
		abort();
	}
	return &loaded;
}

void cuda_host_sgemm(int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float *a, const float *b,
                     float *c)
{
	blas()->sgemm(CblasColMajor, transpose_a ? CblasTrans : CblasNoTrans, transpose_b ? CblasTrans : CblasNoTrans,
	              m, n, k, alpha, a, transpose_a ? k : m, b, transpose_b ? n : k, 0, c, m);
}
