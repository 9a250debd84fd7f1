/*
 * OpenBLAS's sgemm, on one thread, loaded as the CPU device loads it.
 */
#ifndef CUDA_HOST_SGEMM_H
#define CUDA_HOST_SGEMM_H

#ifdef __cplusplus
extern "C" {
#endif

/* c[m, n] = alpha op(a)[m, k] op(b)[k, n]; column-major, without gaps between columns. Ends the program where OpenBLAS
 * is not installed. */
void cuda_host_sgemm(int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float *a, const float *b,
                     float *c);

#ifdef __cplusplus
}
#endif

#endif
