/*
 * Compares operations of a CUDA device with the CPU device's, on odd shapes, and checks that a second run gives the
 * same bits; check_kernels.c compares the others with plain loops. tests/gpu/run starts it.
 *
 *   wlb-gpu-check [--require] [--only NAME] [device index]
 *
 * --only: of the checks of check_kernels.c those whose names begin with NAME, and no others.
 *
 * Without a GPU it says so and exits 0, unless --require.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/ops.h"

enum { MOST_ARRAYS = 10 };

enum kind { REAL, SUM };

/* An array of an operation: inputs and outputs are filled with the same numbers on both devices and compared after. */
struct array {
	enum kind kind;
	int64_t count;
};

/* m rows of n elements; k, heads and the like as each check reads them. */
struct shape {
	int64_t m, n, k;
};

struct check {
	const char *name;
	size_t operation; /* its offset in struct wlb_ops */
	double tolerance; /* of |got - want| / (1 + |want|) */
	void (*plan)(const struct shape *shape, struct array *arrays);
	void (*run)(struct wlb_device *device, const struct shape *shape, void **arrays);
};

#define OPERATION(name) #name, offsetof(struct wlb_ops, name)

/* -- the checks: which arrays, and the call -- */

/* x, weights, y and the residual; rows of x and y have a stride one wider than they are. */
static void plan_linear(const struct shape *s, struct array *a)
{
	a[0] = (struct array){REAL, s->m * (s->k + 1)};
	a[1] = (struct array){REAL, s->n * s->k};
	a[2] = (struct array){REAL, s->m * (s->n + 1)};
	a[3] = (struct array){REAL, s->m * (s->n + 1)};
}

static void run_linear(struct wlb_device *d, const struct shape *s, void **a)
{
	const struct wlb_weight w = {a[1], s->n, s->k};
	d->ops->linear(d, a[2], s->n + 1, a[0], s->k + 1, &w, a[3], s->m);
	d->ops->linear(d, a[3], s->n + 1, a[0], s->k + 1, &w, a[3], s->m);
}

static void run_linear_d_x(struct wlb_device *d, const struct shape *s, void **a)
{
	const struct wlb_weight w = {a[1], s->n, s->k};
	d->ops->linear_d_x(d, a[0], s->k + 1, a[2], s->n + 1, &w, 0, s->m);
	d->ops->linear_d_x(d, a[0], s->k + 1, a[3], s->n + 1, &w, 1, s->m);
}

static void run_linear_d_w(struct wlb_device *d, const struct shape *s, void **a)
{
	d->ops->linear_d_w(d, a[1], a[2], s->n + 1, a[0], s->k + 1, 1, s->m, s->n, s->k);
}

static void plan_elements(const struct shape *s, struct array *a)
{
	for (int i = 0; i < 4; i++)
		a[i] = (struct array){REAL, s->m * s->n};
}

static void plan_adamw(const struct shape *s, struct array *a)
{
	plan_elements(s, a);
	a[5] = (struct array){SUM, 1};
	a[6] = (struct array){SUM, 1};
	a[7] = (struct array){SUM, 1};
}

static void run_adamw(struct wlb_device *d, const struct shape *s, void **a)
{
	d->ops->zero(d, a[3], (size_t)(s->m * s->n) * sizeof(float)); /* v is never negative */
	d->ops->clip_factor(d, a[7], a[5], a[6], 0.5, INFINITY);
	for (int step = 1; step <= 3; step++) {
		const struct wlb_adamw adamw = {0.01, 0.9, 0.95, 1e-8, 0.1, step, NULL};
		d->ops->adamw(d, a[0], a[0], a[1], a[2], a[3], s->m * s->n, &adamw, a[7]);
	}
}

/* Sums of up to n = 1,030 products of numbers up to 1: a sum is about the root of n / 3, each of n roundings is 2^-24
 * of it, and independent ones add up to n / 3 * 2^-24 = 2e-5. Processors and GPUs add in different orders: twice that.
 */
#define OF_PRODUCTS 4e-5

static const struct check CHECKS[] = {
	{OPERATION(linear), OF_PRODUCTS, plan_linear, run_linear},
	{OPERATION(linear_d_x), OF_PRODUCTS, plan_linear, run_linear_d_x},
	{OPERATION(linear_d_w), OF_PRODUCTS, plan_linear, run_linear_d_w},
	{OPERATION(adamw), 1e-5, plan_adamw, run_adamw},
};
enum { CHECK_COUNT = sizeof(CHECKS) / sizeof(CHECKS[0]) };

/* Around warps and blocks; one with many rows, one with none. */
static const struct shape SHAPES[] = {{1, 1, 1},    {3, 17, 5},     {257, 3, 2}, {33, 257, 3},
                                      {129, 64, 1}, {1030, 768, 2}, {0, 5, 3}};
enum { SHAPE_COUNT = sizeof(SHAPES) / sizeof(SHAPES[0]) };

/* -- running one check on one device -- */

static size_t array_bytes(const struct array *array)
{
	return (size_t)array->count * (array->kind == SUM ? sizeof(double) : sizeof(float));
}

/* The same numbers for the same array of the same check. */
static void fill(void *host, const struct array *array, uint32_t seed)
{
	uint32_t state = seed * 2654435761U + 12345;
	for (int64_t i = 0; i < array->count; i++) {
		state = state * 1664525U + 1013904223U;
		if (array->kind == REAL)
			((float *)host)[i] = (float)(state >> 8) / (1 << 23) - 1;
		else
			((double *)host)[i] = 3;
	}
}

/* Runs the check and leaves in host[] what the arrays hold then. The caller frees. -1 with the reason. */
static int run_on(struct wlb_device *device, const struct check *check, const struct shape *shape,
                  const struct array *arrays, void **host, struct wlb_error *error)
{
	void *on_device[MOST_ARRAYS] = {NULL};
	int result = 0;
	for (int i = 0; i < MOST_ARRAYS && result == 0; i++) {
		host[i] = malloc(array_bytes(&arrays[i]) + 1);
		on_device[i] = device->ops->alloc(device, array_bytes(&arrays[i]), error);
		if (host[i] == NULL || on_device[i] == NULL) {
			result = -1;
			break;
		}
		fill(host[i], &arrays[i], (uint32_t)i + 1);
		device->ops->to_device(device, NULL, on_device[i], host[i], array_bytes(&arrays[i]));
	}
	if (result == 0) {
		check->run(device, shape, on_device);
		for (int i = 0; i < MOST_ARRAYS; i++)
			device->ops->to_host(device, host[i], on_device[i], array_bytes(&arrays[i]));
		result = device->ops->synchronize(device, error);
	}
	for (int i = 0; i < MOST_ARRAYS; i++)
		device->ops->release(device, on_device[i]);
	return result;
}

static void free_all(void **host)
{
	for (int i = 0; i < MOST_ARRAYS; i++)
		free(host[i]);
}

/* The largest |got - want| / (1 + |want|); infinity where one is not a number. */
static double largest_error(const struct array *arrays, void *const *got, void *const *want)
{
	double largest = 0;
	for (int a = 0; a < MOST_ARRAYS; a++)
		for (int64_t i = 0; i < arrays[a].count; i++) {
			double g, w;
			if (arrays[a].kind == REAL)
				g = ((float *)got[a])[i], w = ((float *)want[a])[i];
			else
				g = ((double *)got[a])[i], w = ((double *)want[a])[i];
			double error = fabs(g - w) / (1 + fabs(w));
			if (isnan(error))
				return INFINITY;
			largest = error > largest ? error : largest;
		}
	return largest;
}

static int same_bits(const struct array *arrays, void *const *one, void *const *two)
{
	for (int a = 0; a < MOST_ARRAYS; a++)
		if (memcmp(one[a], two[a], array_bytes(&arrays[a])) != 0)
			return 0;
	return 1;
}

/* A digest of the results (FNV-1a), by which the tables of two runs, or of two machines, can be compared. */
static uint64_t digest(const struct array *arrays, void *const *results)
{
	uint64_t hash = 0xcbf29ce484222325U;
	for (int a = 0; a < MOST_ARRAYS; a++)
		for (size_t i = 0; i < array_bytes(&arrays[a]); i++)
			hash = (hash ^ ((const unsigned char *)results[a])[i]) * 0x100000001b3U;
	return hash;
}

/* One row of the table; returns whether it passed. */
static int check_shape(struct wlb_device *cpu, struct wlb_device *cuda, const struct check *check,
                       const struct shape *shape)
{
	struct array arrays[MOST_ARRAYS] = {{REAL, 0}};
	void *want[MOST_ARRAYS] = {NULL}, *got[MOST_ARRAYS] = {NULL}, *again[MOST_ARRAYS] = {NULL};
	struct wlb_error error = {"out of host memory"};
	check->plan(shape, arrays);
	printf("%-20s %5lld x %-4lld x %-3lld ", check->name, (long long)shape->m, (long long)shape->n,
	       (long long)shape->k);
	int passed = 0;
	if (run_on(cpu, check, shape, arrays, want, &error) != 0 ||
	    run_on(cuda, check, shape, arrays, got, &error) != 0 ||
	    run_on(cuda, check, shape, arrays, again, &error) != 0) {
		printf("FAILED: %s\n", error.message);
	} else {
		double largest = largest_error(arrays, got, want);
		int same = same_bits(arrays, got, again);
		passed = largest <= check->tolerance && same;
		printf("error %.1e of %.0e  bits %016llx, second run %s  %s\n", largest, check->tolerance,
		       (unsigned long long)digest(arrays, got), same ? "same" : "DIFFERS", passed ? "ok" : "FAILED");
	}
	free_all(want);
	free_all(got);
	free_all(again);
	return passed;
}

/* An operation that cannot be launched leaves an error with its name, and the device goes on working. */
static int check_errors(struct wlb_device *cuda)
{
	struct wlb_error error = {""};
	void *x = cuda->ops->alloc(cuda, 64, &error);
	int refused = cuda->ops->alloc(cuda, (size_t)1 << 60, &error) == NULL && error.message[0] != '\0';
	const int64_t too_many = INT64_C(1) << 31; /* rows: a grid has fewer blocks */
	cuda->ops->rmsnorm_forward(cuda, x, x, NULL, x, NULL, x, 0, too_many, 1, 1e-5);
	cuda->ops->add(cuda, x, (const float *)x + 8, 8);
	int kept = cuda->ops->synchronize(cuda, &error) == -1 && strstr(error.message, "rmsnorm") != NULL;
	int works = cuda->ops->synchronize(cuda, &error) == 0;
	cuda->ops->release(cuda, x);
	int passed = refused && kept && works;
	printf("%-20s %22s %s\n", "errors", "", passed ? "ok" : "FAILED");
	return passed;
}

/* check_ptx.cu, where it is built: whether a matrix product by tensor cores is right; prints its row of the table. */
int wlb_check_ptx(struct wlb_device *cuda) __attribute__((weak));
/* check_linear.c, in the same way: whether the matrix products are right. */
int wlb_check_linear(struct wlb_device *cuda) __attribute__((weak));
/* check_masters.c: whether weights are updated from masters of another type; prints its row of the table. */
int wlb_check_masters(struct wlb_device *cuda);

/* check_attention.c, where it is built (tests/cuda_host has a test of its own for the same cases): prints a row for
 * each case, adds those that failed to *failed and returns how many passed. */
int wlb_check_attention(struct wlb_device *cuda, int *failed) __attribute__((weak));

/* check_kernels.c, likewise; it counts its checks. Without a device it only returns how many they are. */
int wlb_check_kernels(struct wlb_device *cuda, const char *only, int *passed, int *failed) __attribute__((weak));

static int print_counts(int passed, int failed, int skipped)
{
	printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
	return failed > 0 || passed + skipped == 0 ? 1 : 0;
}

static int check_only(struct wlb_device *cuda, const char *only)
{
	int passed = 0, failed = 0;
	if (wlb_check_kernels != NULL)
		wlb_check_kernels(cuda, only, &passed, &failed);
	return print_counts(passed, failed, 0);
}

static int check_all(struct wlb_device *cpu, struct wlb_device *cuda)
{
	int passed = 0, failed = 0, skipped = 0;
	for (int c = 0; c < CHECK_COUNT; c++) {
		void *operation;
		memcpy(&operation, (const char *)cuda->ops + CHECKS[c].operation, sizeof(operation));
		if (operation == NULL) {
			printf("%-20s this device does not have it yet\n", CHECKS[c].name);
			skipped += SHAPE_COUNT;
			continue;
		}
		for (int s = 0; s < SHAPE_COUNT; s++) {
			int ok = check_shape(cpu, cuda, &CHECKS[c], &SHAPES[s]);
			passed += ok;
			failed += !ok;
		}
	}
	int ok = check_errors(cuda) + wlb_check_masters(cuda) + (wlb_check_ptx != NULL ? wlb_check_ptx(cuda) : 1) +
	         (wlb_check_linear != NULL ? wlb_check_linear(cuda) : 1);
	passed += ok;
	failed += 4 - ok;
	if (wlb_check_attention != NULL)
		passed += wlb_check_attention(cuda, &failed);
	if (wlb_check_kernels != NULL)
		wlb_check_kernels(cuda, NULL, &passed, &failed);
	return print_counts(passed, failed, skipped);
}

int main(int count, char **arguments)
{
	const char *only = NULL;
	int index = 0, require = 0;
	for (int i = 1; i < count; i++) {
		if (strcmp(arguments[i], "--require") == 0)
			require = 1;
		else if (strcmp(arguments[i], "--only") == 0 && i + 1 < count)
			only = arguments[++i];
		else if (sscanf(arguments[i], "%d", &index) != 1) {
			fprintf(stderr, "wlb-gpu-check: '%s': give [--require] [--only NAME] [device index]\n",
			        arguments[i]);
			return 2;
		}
	}
	struct wlb_error error;
	struct wlb_device *cuda = wlb_device_open_cuda(index, WLB_FLOAT32, WLB_FLOAT32, &error);
	if (cuda == NULL) {
		const int kernels = wlb_check_kernels != NULL ? wlb_check_kernels(NULL, NULL, NULL, NULL) : 0;
		printf("0 passed, 0 failed, %d skipped: %s\n", CHECK_COUNT * SHAPE_COUNT + 4 + kernels, error.message);
		return require;
	}
	struct wlb_device *cpu = wlb_device_open_cpu(WLB_FLOAT32, 0, &error);
	if (cpu == NULL) {
		fprintf(stderr, "wlb-gpu-check: %s\n", error.message);
		wlb_device_close(cuda);
		return 1;
	}
	int result = only != NULL ? check_only(cuda, only) : check_all(cpu, cuda);
	wlb_device_close(cpu);
	wlb_device_close(cuda);
	return result;
}
