/*
 * Times the operations of the CPU device: GFLOP/s of products and attention, ns per element of the rest, each beside
 * what it is compared with in the same run.
 *
 *   wlb-kernels-bench [threads] [float32|float64] [quick]
 *
 * `quick` runs everything once on small sizes: it shows that the program works and measures nothing.
 */
#include <cblas.h>
#include <dlfcn.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/ops.h"

struct bench {
	struct wlb_device *device;
	void *openblas; /* the library that the device has loaded */
	int threads;
	double least_s; /* each measurement takes at least this long, and is the best of its repeats */
	int64_t tokens;
};

static double now_s(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* One thing to time; the fields are whatever its function needs. */
struct work {
	struct bench *bench;
	int64_t m, n, k;
	int trans_a, trans_b;
	void *array[10];
	struct wlb_segments segments;
	struct wlb_attention_shape shape;
	int32_t *ids;
	double *sum;
};

/* Seconds of the fastest of at least three calls after one to warm up. */
static double best_s(const struct work *work, void (*function)(const struct work *))
{
	double best = INFINITY, begin = now_s();
	function(work);
	for (int calls = 0; calls < 3 || now_s() - begin < work->bench->least_s; calls++) {
		double start = now_s();
		function(work);
		double seconds = now_s() - start;
		best = seconds < best ? seconds : best;
		if (work->bench->least_s == 0)
			break;
	}
	return best;
}

static void *array_of(struct bench *bench, int64_t count)
{
	struct wlb_error error;
	size_t size = wlb_dtype_bytes(bench->device->compute);
	void *array = bench->device->ops->alloc(bench->device, (size_t)count * size, &error);
	if (array == NULL) {
		fprintf(stderr, "wlb-kernels-bench: %s\n", error.message);
		exit(1);
	}
	for (int64_t i = 0; i < count; i++) { /* small, mixed signs, no denormals */
		double value = (double)((i * 7919) % 2003) / 2003 - 0.5;
		if (bench->device->compute == WLB_FLOAT32)
			((float *)array)[i] = (float)value;
		else
			((double *)array)[i] = value;
	}
	return array;
}

static void release_arrays(struct work *work)
{
	for (size_t i = 0; i < sizeof(work->array) / sizeof(work->array[0]); i++)
		work->bench->device->ops->release(work->bench->device, work->array[i]);
}

/* -- products -- */

static void run_gemm(const struct work *w)
{
	w->bench->device->ops->gemm(w->bench->device, w->trans_a, w->trans_b, w->m, w->n, w->k, 1, w->array[0],
	                            w->trans_a ? w->m : w->k, w->array[1], w->trans_b ? w->k : w->n, 0, w->array[2],
	                            w->n);
}

/* OpenBLAS with threads of its own. */
static void run_openblas(const struct work *w)
{
	enum CBLAS_TRANSPOSE a = w->trans_a ? CblasTrans : CblasNoTrans, b = w->trans_b ? CblasTrans : CblasNoTrans;
	int m = (int)w->m, n = (int)w->n, k = (int)w->k;
	int lda = w->trans_a ? m : k, ldb = w->trans_b ? k : n;
	__typeof__(openblas_set_num_threads) *set_num_threads = dlsym(w->bench->openblas, "openblas_set_num_threads");
	__typeof__(cblas_sgemm) *sgemm = dlsym(w->bench->openblas, "cblas_sgemm");
	__typeof__(cblas_dgemm) *dgemm = dlsym(w->bench->openblas, "cblas_dgemm");
	set_num_threads(w->bench->threads);
	if (w->bench->device->compute == WLB_FLOAT32)
		sgemm(CblasRowMajor, a, b, m, n, k, 1, w->array[0], lda, w->array[1], ldb, 0, w->array[2], n);
	else
		dgemm(CblasRowMajor, a, b, m, n, k, 1, w->array[0], lda, w->array[1], ldb, 0, w->array[2], n);
	set_num_threads(1);
}

static void bench_gemm(struct bench *bench, const char *name, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k)
{
	struct work w = {.bench = bench, .m = m, .n = n, .k = k, .trans_a = trans_a, .trans_b = trans_b};
	w.array[0] = array_of(bench, m * k);
	w.array[1] = array_of(bench, k * n);
	w.array[2] = array_of(bench, m * n);
	double flop = 2.0 * (double)m * (double)n * (double)k;
	double ours = flop / best_s(&w, run_gemm) * 1e-9, theirs = flop / best_s(&w, run_openblas) * 1e-9;
	printf("| gemm %s | %lld x %lld x %lld | %.1f GFLOP/s | %.1f GFLOP/s | OpenBLAS, own threads |\n", name,
	       (long long)m, (long long)n, (long long)k, ours, theirs);
	release_arrays(&w);
}

/* -- attention -- arrays: q k v out lse d_q d_k d_v d_out */

static void run_attention_forward(const struct work *w)
{
	w->bench->device->ops->attention_forward(w->bench->device, w->array[3], w->array[4], w->array[0], w->array[1],
	                                         w->array[2], &w->segments, &w->shape);
}

static void run_attention_backward(const struct work *w)
{
	w->bench->device->ops->attention_backward(w->bench->device, w->array[5], w->array[6], w->array[7], w->array[8],
	                                          w->array[0], w->array[1], w->array[2], w->array[3], w->array[4],
	                                          &w->segments, &w->shape);
}

/* The three loops of the definition, one thread, in float: llm.c's way. Only for float32, heads == kv_heads. */
static void run_naive_attention(const struct work *w)
{
	const float *q = w->array[0], *k = w->array[1], *v = w->array[2];
	float *out = w->array[3], *weights = w->array[9];
	int dim = w->shape.head_dim, heads = w->shape.heads, row = heads * dim;
	float scale = 1 / sqrtf((float)dim);
	for (int64_t t = 0; t < w->shape.q_tokens; t++)
		for (int h = 0; h < heads; h++) {
			float sum = 0, *to = out + t * row + h * dim;
			for (int64_t j = 0; j <= t; j++) {
				float score = 0;
				for (int d = 0; d < dim; d++)
					score += q[t * row + h * dim + d] * k[j * row + h * dim + d];
				sum += weights[j] = expf(score * scale);
			}
			memset(to, 0, (size_t)dim * sizeof(*to));
			for (int64_t j = 0; j <= t; j++)
				for (int d = 0; d < dim; d++)
					to[d] += weights[j] / sum * v[j * row + h * dim + d];
		}
}

/* `documents` of equal length side by side; counted are the multiplications under the causal mask only. */
static void bench_attention(struct bench *bench, int64_t tokens, int documents, int heads, int kv_heads, int head_dim)
{
	struct work w = {.bench = bench, .shape = {tokens, tokens, heads, kv_heads, head_dim}};
	int32_t length = (int32_t)(tokens / documents);
	struct wlb_segment *segments = calloc((size_t)documents, sizeof(*segments));
	for (int i = 0; segments != NULL && i < documents; i++)
		segments[i] = (struct wlb_segment){i * length, length, i * length, length, 0};
	w.segments = (struct wlb_segments){segments, segments ? documents : 0, length, length};
	for (int i = 0; i < 9; i++)
		w.array[i] = array_of(bench, tokens * heads * head_dim);
	w.array[9] = array_of(bench, tokens);
	double pairs = (double)documents * length * (length + 1.0) / 2 * heads;
	double forward = best_s(&w, run_attention_forward), backward = best_s(&w, run_attention_backward);
	char naive[64] = "-";
	if (bench->device->compute == WLB_FLOAT32 && documents == 1 && heads == kv_heads && tokens <= bench->tokens)
		snprintf(naive, sizeof(naive), "%.1f GFLOP/s",
		         pairs * 4 * head_dim / best_s(&w, run_naive_attention) * 1e-9);
	printf("| attention forward | %d x %d tokens, %d/%d heads of %d | %.1f GFLOP/s | %s | plain loops, 1 thread "
	       "|\n",
	       documents, (int)length, heads, kv_heads, head_dim, pairs * 4 * head_dim / forward * 1e-9, naive);
	printf("| attention backward | the same | %.1f GFLOP/s | - | |\n", pairs * 10 * head_dim / backward * 1e-9);
	release_arrays(&w);
	free(segments);
}

/* -- the rest -- w.m rows of w.n elements */

static void run_rmsnorm_forward(const struct work *w)
{
	w->bench->device->ops->rmsnorm_forward(w->bench->device, w->array[0], w->array[1], w->array[2], w->array[3],
	                                       w->m, w->n, 1e-5);
}

static void run_rmsnorm_backward(const struct work *w)
{
	w->bench->device->ops->rmsnorm_backward(w->bench->device, w->array[0], w->array[3], w->array[2], w->array[2],
	                                        w->array[3], w->array[1], w->m, w->n);
}

static void run_rope(const struct work *w)
{
	w->bench->device->ops->rope(w->bench->device, w->array[0], w->ids, w->m, (int)(w->n / 64), 64, 10000, 1);
}

static void run_swiglu_forward(const struct work *w)
{
	w->bench->device->ops->swiglu_forward(w->bench->device, w->array[0], w->array[2], w->array[4], w->m * w->n);
}

static void run_swiglu_backward(const struct work *w)
{
	w->bench->device->ops->swiglu_backward(w->bench->device, w->array[0], w->array[5], w->array[2], w->array[2],
	                                       w->array[4], w->m * w->n);
}

static void run_cross_entropy_statistics(const struct work *w)
{
	w->bench->device->ops->cross_entropy_statistics(w->bench->device, w->array[1], w->array[0], w->ids, w->m, 0,
	                                                w->n);
}

static void run_cross_entropy(const struct work *w)
{
	run_cross_entropy_statistics(w);
	w->bench->device->ops->cross_entropy_gradient(w->bench->device, w->sum, w->array[0], w->array[1], 1, w->ids,
	                                              w->m, 0, w->n, 1);
}

static void run_embedding_backward(const struct work *w)
{
	w->bench->device->ops->embedding_backward(w->bench->device, w->array[0], w->array[2], w->ids, w->m, w->n, 0,
	                                          w->m);
}

static void run_add(const struct work *w)
{
	w->bench->device->ops->add(w->bench->device, w->array[0], w->array[2], w->m * w->n);
}

static void run_sum_squares(const struct work *w)
{
	w->bench->device->ops->sum_squares(w->bench->device, w->sum, w->array[2], w->m * w->n);
}

static void run_zero(const struct work *w)
{
	w->bench->device->ops->zero(w->bench->device, w->array[0],
	                            (size_t)(w->m * w->n) * wlb_dtype_bytes(w->bench->device->compute));
}

static void run_device_copy(const struct work *w)
{
	w->bench->device->ops->copy(w->bench->device, w->array[0], w->array[2],
	                            (size_t)(w->m * w->n) * wlb_dtype_bytes(w->bench->device->compute));
}

static void run_adamw(const struct work *w)
{
	const struct wlb_adamw adamw = {1e-3, 0.9, 0.95, 1e-8, 0.1, 10};
	const double factor = 1; /* the CPU device's memory is host memory */
	w->bench->device->ops->adamw(w->bench->device, w->array[0], w->array[0], w->array[2], w->array[4], w->array[5],
	                             w->m * w->n, &adamw, &factor);
}

/* What memory allows: a copy of the same bytes by one thread. */
static void run_copy(const struct work *w)
{
	memcpy(w->array[0], w->array[2], (size_t)(w->m * w->n) * wlb_dtype_bytes(w->bench->device->compute));
}

static void bench_elements(struct bench *bench, const char *name, void (*function)(const struct work *), int64_t m,
                           int64_t n)
{
	double sum = 0;
	struct work w = {.bench = bench, .m = m, .n = n, .sum = &sum, .ids = calloc((size_t)m, sizeof(int32_t))};
	for (int64_t t = 0; w.ids != NULL && t < m; t++)
		w.ids[t] = (int32_t)(t * 31 % (m < n ? m : n));
	static const int large[] = {0, 2, 4, 5};
	for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++)
		w.array[large[i]] = array_of(bench, m * n);
	bench->device->ops->zero(bench->device, w.array[5], (size_t)(m * n) * wlb_dtype_bytes(bench->device->compute));
	w.array[1] = array_of(bench, 3 * m);
	w.array[3] = array_of(bench, n);
	double elements = (double)m * (double)n;
	double ours = best_s(&w, function) / elements * 1e9, copy = best_s(&w, run_copy) / elements * 1e9;
	printf("| %s | %lld x %lld | %.3f ns/element | %.3f ns/element | memcpy, 1 thread |\n", name, (long long)m,
	       (long long)n, ours, copy);
	release_arrays(&w);
	free(w.ids);
}

static void bench_all(struct bench *bench)
{
	int64_t t = bench->tokens;
	puts("| operation | size | WLB | compared with | what |\n|---|---|---|---|---|");
	bench_gemm(bench, "square", 0, 0, 2 * t, 2 * t, 2 * t);
	bench_gemm(bench, "linear y = x W^T", 0, 1, t, 3072, 768);
	bench_gemm(bench, "input gradient", 0, 0, t, 768, 3072);
	bench_gemm(bench, "weight gradient", 1, 0, 3072, 768, t);
	bench_gemm(bench, "logits", 0, 1, t / 4, 50304, 768);
	bench_gemm(bench, "their input gradient", 0, 0, t / 4, 768, 50304);
	bench_gemm(bench, "their weight gradient", 1, 0, 50304, 768, t / 4);
	bench_gemm(bench, "small linear", 0, 1, 256, 128, 128);
	bench_attention(bench, t, 1, 12, 12, 64);
	bench_attention(bench, 4 * t, 1, 12, 12, 64);
	bench_attention(bench, t, 16, 12, 12, 64);
	bench_attention(bench, t, 1, 16, 4, 128);
	bench_elements(bench, "rmsnorm forward", run_rmsnorm_forward, t, 768);
	bench_elements(bench, "rmsnorm backward", run_rmsnorm_backward, t, 768);
	bench_elements(bench, "rope", run_rope, t, 768);
	bench_elements(bench, "swiglu forward", run_swiglu_forward, t, 2048);
	bench_elements(bench, "swiglu backward", run_swiglu_backward, t, 2048);
	bench_elements(bench, "cross entropy, statistics alone", run_cross_entropy_statistics, t, 50257);
	bench_elements(bench, "cross entropy", run_cross_entropy, t, 50257);
	bench_elements(bench, "embedding backward", run_embedding_backward, t, 768);
	bench_elements(bench, "add", run_add, t, 768);
	bench_elements(bench, "zero", run_zero, 64 * t, 768);
	bench_elements(bench, "copy", run_device_copy, 64 * t, 768);
	bench_elements(bench, "sum of squares", run_sum_squares, 64 * t, 768);
	bench_elements(bench, "adamw", run_adamw, 64 * t, 768);
}

int main(int count, char **arguments)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	struct bench bench = {.threads = 0, .least_s = 0.5, .tokens = 1024};
	enum wlb_dtype dtype = WLB_FLOAT32;
	for (int i = 1; i < count; i++) {
		if (strcmp(arguments[i], "quick") == 0) {
			bench.least_s = 0;
			bench.tokens = 64;
		} else if (strcmp(arguments[i], "float64") == 0) {
			dtype = WLB_FLOAT64;
		} else if (strcmp(arguments[i], "float32") != 0 && (bench.threads = atoi(arguments[i])) <= 0) {
			fprintf(stderr, "wlb-kernels-bench: '%s': give [threads] [float32|float64] [quick]\n",
			        arguments[i]);
			return 2;
		}
	}
	if (bench.threads == 0)
		bench.threads = omp_get_max_threads();
	struct wlb_error error;
	bench.device = wlb_device_open_cpu(dtype, bench.threads, &error);
	if (bench.device == NULL) {
		fprintf(stderr, "wlb-kernels-bench: %s\n", error.message);
		return 1;
	}
	bench.openblas = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_NOLOAD);
	if (bench.openblas == NULL) {
		fprintf(stderr, "wlb-kernels-bench: %s\n", dlerror());
		return 1;
	}
	__typeof__(openblas_get_corename) *core = dlsym(bench.openblas, "openblas_get_corename");
	printf("%s, %d threads, OpenBLAS for %s\n\n", wlb_dtype_name(dtype), bench.threads, core());
	bench_all(&bench);
	wlb_device_close(bench.device);
	return 0;
}
