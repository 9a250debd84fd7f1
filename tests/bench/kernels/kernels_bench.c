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

/* -- products -- of n rows: arrays x[n, in], w[out, in], y[n, out]. w.m rows, w.k in, w.n out */

static void run_linear(const struct work *w)
{
	const struct wlb_weight weight = {w->array[1], w->n, w->k};
	w->bench->device->ops->linear(w->bench->device, w->array[2], w->n, w->array[0], w->k, &weight, NULL, w->m);
}

static void run_linear_d_x(const struct work *w)
{
	const struct wlb_weight weight = {w->array[1], w->n, w->k};
	w->bench->device->ops->linear_d_x(w->bench->device, w->array[0], w->k, w->array[2], w->n, &weight, 0, w->m);
}

static void run_linear_d_w(const struct work *w)
{
	w->bench->device->ops->linear_d_w(w->bench->device, w->array[1], w->array[2], w->n, w->array[0], w->k, 1, w->m,
	                                  w->n, w->k);
}

/* c[m, n] = op(a) op(b) by OpenBLAS with threads of its own; which arrays are a, b and c. */
struct blas_call {
	enum CBLAS_TRANSPOSE trans_a, trans_b;
	int64_t m, n, k;
	int a, b, c;
	double beta;
};

static void call_openblas(const struct work *w, const struct blas_call *call)
{
	int m = (int)call->m, n = (int)call->n, k = (int)call->k;
	int lda = call->trans_a == CblasTrans ? m : k, ldb = call->trans_b == CblasTrans ? k : n;
	const void *a = w->array[call->a], *b = w->array[call->b];
	__typeof__(openblas_set_num_threads) *set_num_threads = dlsym(w->bench->openblas, "openblas_set_num_threads");
	__typeof__(cblas_sgemm) *sgemm = dlsym(w->bench->openblas, "cblas_sgemm");
	__typeof__(cblas_dgemm) *dgemm = dlsym(w->bench->openblas, "cblas_dgemm");
	set_num_threads(w->bench->threads);
	if (w->bench->device->compute == WLB_FLOAT32)
		sgemm(CblasRowMajor, call->trans_a, call->trans_b, m, n, k, 1, a, lda, b, ldb, (float)call->beta,
		      w->array[call->c], n);
	else
		dgemm(CblasRowMajor, call->trans_a, call->trans_b, m, n, k, 1, a, lda, b, ldb, call->beta,
		      w->array[call->c], n);
	set_num_threads(1);
}

static void run_openblas(const struct work *w)
{
	call_openblas(w, &(struct blas_call){CblasNoTrans, CblasTrans, w->m, w->n, w->k, 0, 1, 2, 0});
}

static void run_openblas_d_x(const struct work *w)
{
	call_openblas(w, &(struct blas_call){CblasNoTrans, CblasNoTrans, w->m, w->k, w->n, 2, 1, 0, 0});
}

static void run_openblas_d_w(const struct work *w)
{
	call_openblas(w, &(struct blas_call){CblasTrans, CblasNoTrans, w->n, w->k, w->m, 2, 0, 1, 1});
}

static void bench_linear(struct bench *bench, const char *name, int64_t rows, int64_t out, int64_t in)
{
	static const struct {
		const char *name;
		void (*ours)(const struct work *), (*theirs)(const struct work *);
	} products[] = {{"output", run_linear, run_openblas},
	                {"input gradient", run_linear_d_x, run_openblas_d_x},
	                {"weight gradient", run_linear_d_w, run_openblas_d_w}};
	struct work w = {.bench = bench, .m = rows, .n = out, .k = in};
	w.array[0] = array_of(bench, rows * in);
	w.array[1] = array_of(bench, out * in);
	w.array[2] = array_of(bench, rows * out);
	double flop = 2.0 * (double)rows * (double)out * (double)in;
	for (size_t i = 0; i < sizeof(products) / sizeof(products[0]); i++) {
		double ours = flop / best_s(&w, products[i].ours) * 1e-9;
		double theirs = flop / best_s(&w, products[i].theirs) * 1e-9;
		printf("| linear %s, %s | %lld x %lld x %lld | %.1f GFLOP/s | %.1f GFLOP/s | OpenBLAS, own threads |\n",
		       name, products[i].name, (long long)rows, (long long)in, (long long)out, ours, theirs);
	}
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
	struct work w = {.bench = bench,
	                 .shape = {.q_tokens = tokens,
	                           .k_tokens = tokens,
	                           .heads = heads,
	                           .kv_heads = kv_heads,
	                           .head_dim = head_dim,
	                           .q_stride = heads * head_dim,
	                           .kv_stride = kv_heads * head_dim,
	                           .out_stride = heads * head_dim}};
	int32_t length = (int32_t)(tokens / documents);
	struct wlb_segment *segments = calloc((size_t)documents, sizeof(*segments));
	for (int i = 0; segments != NULL && i < documents; i++)
		segments[i] = (struct wlb_segment){i * length, length, i * length, length, 0};
	w.segments = (struct wlb_segments){
		.segments = segments, .count = segments ? documents : 0, .max_q = length, .max_k = length};
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
	w->bench->device->ops->rmsnorm_forward(w->bench->device, w->array[0], w->array[1], NULL, w->array[2], NULL,
	                                       w->array[3], 0, w->m, w->n, 1e-5);
}

static void run_rmsnorm_backward(const struct work *w)
{
	w->bench->device->ops->rmsnorm_backward(w->bench->device, w->array[0], w->array[3], w->array[2], w->array[2],
	                                        w->array[3], 0, w->array[1], w->m, w->n);
}

static void run_rope_angles(const struct work *w)
{
	w->bench->device->ops->rope_angles(w->bench->device, w->array[0], w->ids, w->m, w->array[2], (int)w->n / 2,
	                                   1.0);
}

static void run_rope(const struct work *w)
{
	w->bench->device->ops->rope(w->bench->device, w->array[0], w->n, w->array[2], w->m, (int)(w->n / 64), 64, 32,
	                            1);
}

/* gate_up is [m, n], the result [m, n / 2]. */
static void run_swiglu_forward(const struct work *w)
{
	w->bench->device->ops->swiglu_forward(w->bench->device, w->array[0], w->array[2], w->m, w->n / 2);
}

static void run_swiglu_backward(const struct work *w)
{
	w->bench->device->ops->swiglu_backward(w->bench->device, w->array[2], w->array[4], w->m, w->n / 2);
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
	                                              w->m, 0, w->n, 1, 0);
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
	const struct wlb_adamw adamw = {1e-3, 0.9, 0.95, 1e-8, 0.1, 10, NULL};
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
	bench_linear(bench, "square", 2 * t, 2 * t, 2 * t);
	bench_linear(bench, "MLP", t, 3072, 768);
	bench_linear(bench, "head", t / 4, 50304, 768);
	bench_linear(bench, "small", 256, 128, 128);
	bench_attention(bench, t, 1, 12, 12, 64);
	bench_attention(bench, 4 * t, 1, 12, 12, 64);
	bench_attention(bench, t, 16, 12, 12, 64);
	bench_attention(bench, t, 1, 16, 4, 128);
	bench_elements(bench, "rmsnorm forward", run_rmsnorm_forward, t, 768);
	bench_elements(bench, "rmsnorm backward", run_rmsnorm_backward, t, 768);
	bench_elements(bench, "rope, angles", run_rope_angles, t, 64);
	bench_elements(bench, "rope", run_rope, t, 768);
	bench_elements(bench, "swiglu forward, gate and up", run_swiglu_forward, t, 4096);
	bench_elements(bench, "swiglu backward, gate and up", run_swiglu_backward, t, 4096);
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
