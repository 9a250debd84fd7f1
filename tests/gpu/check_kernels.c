/* Runs the cases of check_kernels.h: fills the arrays, starts the kernel twice and compares. */
#include "tests/gpu/check_kernels.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double check_sum_roundings(int64_t terms)
{
	return 64 + (double)terms / 32;
}

/* The element type of arrays that have one. */
static enum wlb_dtype type_of(const struct check_trial *trial, const struct check_array *array)
{
	return array->kind == CHECK_COMPUTE     ? trial->device->compute
	       : array->kind == CHECK_GRADIENTS ? trial->device->gradients
	                                        : WLB_FLOAT32;
}

void check_want(const struct check_trial *trial, struct check_array *array, int64_t i, double want, double float_error)
{
	const double roundoff = type_of(trial, array) == WLB_BFLOAT16 ? BFLOAT16_ROUNDOFF : FLOAT_ROUNDOFF;
	array->want[i] = want;
	array->bound[i] = roundoff * (fabs(want) + float_error) + float_error + FLT_MIN;
}

/* -- elements -- */

static size_t element_bytes(const struct check_trial *trial, const struct check_array *array)
{
	if (array->kind == CHECK_SUM)
		return sizeof(double);
	return array->kind == CHECK_INDEX ? sizeof(int32_t) : wlb_dtype_bytes(type_of(trial, array));
}

static void store(const struct check_trial *trial, const struct check_array *array, void *host, int64_t i)
{
	if (array->kind == CHECK_INDEX)
		((int32_t *)host)[i] = (int32_t)array->before[i];
	else if (array->kind == CHECK_SUM)
		((double *)host)[i] = array->before[i];
	else
		wlb_dtype_store(type_of(trial, array), host, i, array->before[i]);
}

static double load(const struct check_trial *trial, const struct check_array *array, const void *host, int64_t i)
{
	if (array->kind == CHECK_INDEX)
		return ((const int32_t *)host)[i];
	if (array->kind == CHECK_SUM)
		return ((const double *)host)[i];
	return wlb_dtype_load(type_of(trial, array), host, i);
}

/* -- a trial -- */

/* for each array that the case has */
#define FOR_ARRAYS(array, trial)                                                                                       \
	for (struct check_array *array = (trial)->arrays; array < (trial)->arrays + CHECK_ARRAYS; array++)             \
		if (array->kind != CHECK_NONE)

/* Random numbers, the same in every run. */
static void fill(struct check_array *array, uint32_t seed)
{
	uint32_t state = seed * 2654435761U + 12345;
	for (int64_t i = 0; i < array->count; i++) {
		state = state * 1664525U + 1013904223U;
		const double value = array->low + (array->high - array->low) * state / 0x1p32;
		array->before[i] = array->kind == CHECK_INDEX ? floor(value) : value;
	}
}

/* Rounds `before` to the array's type, which is then in `host` as well, and expects it unchanged. */
static void round_before(const struct check_trial *trial, struct check_array *array)
{
	for (int64_t i = 0; i < array->count; i++) {
		store(trial, array, array->host, i);
		array->before[i] = array->want[i] = load(trial, array, array->host, i);
	}
}

static int allocate(struct check_trial *trial, struct wlb_error *error)
{
	const struct wlb_ops *ops = trial->device->ops;
	FOR_ARRAYS(array, trial)
	{
		const size_t bytes = (size_t)array->count * element_bytes(trial, array);
		array->host = malloc(bytes + 1);
		array->before = malloc(4 * (size_t)array->count * sizeof(double) + 1);
		array->allocation = ops->alloc(
			trial->device, bytes + (size_t)trial->shape->offset * element_bytes(trial, array), error);
		if (array->host == NULL || array->before == NULL)
			return wlb_fail(error, "out of host memory");
		if (array->allocation == NULL)
			return -1;
		array->got = array->before + array->count;
		array->want = array->got + array->count;
		array->bound = array->want + array->count;
		array->memory = (char *)array->allocation + (size_t)trial->shape->offset * element_bytes(trial, array);
	}
	return 0;
}

static void release(struct check_trial *trial)
{
	FOR_ARRAYS(array, trial)
	{
		trial->device->ops->release(trial->device, array->allocation);
		free(array->host);
		free(array->before);
	}
}

/* Runs the kernel on the arrays as they are before. Returns a digest of what they hold then (FNV-1a), by which the
 * tables of two runs, or of two machines, can be compared. */
static uint64_t run_once(struct check_trial *trial, const struct check_case *check)
{
	const struct wlb_ops *ops = trial->device->ops;
	uint64_t hash = 0xcbf29ce484222325U;
	FOR_ARRAYS(array, trial)
	{
		round_before(trial, array);
		ops->to_device(trial->device, NULL, array->memory, array->host,
		               (size_t)array->count * element_bytes(trial, array));
	}
	check->run(trial);
	FOR_ARRAYS(array, trial)
	{
		const size_t bytes = (size_t)array->count * element_bytes(trial, array);
		ops->to_host(trial->device, array->host, array->memory, bytes);
		for (size_t i = 0; i < bytes; i++)
			hash = (hash ^ ((const unsigned char *)array->host)[i]) * 0x100000001b3U;
		for (int64_t i = 0; i < array->count; i++)
			array->got[i] = load(trial, array, array->host, i);
	}
	return hash;
}

/* The largest |got - want| / bound; infinity where one is no number. */
static double largest_error(struct check_trial *trial)
{
	double largest = 0;
	FOR_ARRAYS(array, trial)
	for (int64_t i = 0; i < array->count; i++) {
		const double difference = fabs(array->got[i] - array->want[i]);
		if (array->got[i] == array->want[i])
			continue;
		if (!(difference <= array->bound[i]) || array->bound[i] == 0)
			return INFINITY;
		largest = fmax(largest, difference / array->bound[i]);
	}
	return largest;
}

/* Returns whether both runs gave the same bits and no value differs by more than its bound. */
static int compare(struct check_trial *trial, const struct check_case *check)
{
	struct wlb_error error = {""};
	const uint64_t first = run_once(trial, check), second = run_once(trial, check);
	if (trial->device->ops->synchronize(trial->device, &error) != 0) {
		printf("FAILED: %s\n", error.message);
		return 0;
	}
	FOR_ARRAYS(array, trial)
	memset(array->bound, 0, (size_t)array->count * sizeof(double));
	check->expect(trial);
	const double largest = largest_error(trial);
	const int passed = first == second && largest <= 1;
	printf("error %.2f of its bound  bits %016llx, second run %s  %s\n", largest, (unsigned long long)first,
	       first == second ? "same" : "DIFFERS", passed ? "ok" : "FAILED");
	return passed;
}

static int run_trial(struct wlb_device *device, const struct check_case *check, const struct check_shape *shape)
{
	struct check_trial trial = {
		.device = device,
		.shape = shape,
	};
	struct wlb_error error = {""};
	int passed = 0;
	printf("%-24s %-8s %-8s %4lld x %-5lld %4lld %lld %d  ", check->name, wlb_dtype_name(device->compute),
	       wlb_dtype_name(device->gradients), (long long)shape->rows, (long long)shape->width,
	       (long long)shape->extra, (long long)shape->pad, shape->offset);
	check->plan(&trial);
	if (allocate(&trial, &error) != 0) {
		printf("FAILED: %s\n", error.message);
	} else {
		FOR_ARRAYS(array, &trial)
		{
			fill(array, (uint32_t)(array - trial.arrays) + 1);
			round_before(&trial, array);
		}
		if (check->prepare != NULL)
			check->prepare(&trial);
		passed = compare(&trial, check);
	}
	release(&trial);
	return passed;
}

static int has_gradients(const struct check_case *check, const struct check_shape *shape)
{
	struct check_trial trial = {.shape = shape};
	check->plan(&trial);
	for (int i = 0; i < CHECK_ARRAYS; i++)
		if (trial.arrays[i].kind == CHECK_GRADIENTS)
			return 1;
	return 0;
}

/* The element types of a device. */
struct types {
	enum wlb_dtype compute, gradients;
};

static int is_chosen(const struct check_case *check, const char *only)
{
	return only == NULL || strncmp(check->name, only, strlen(only)) == 0;
}

/* Where gradients have not the type that they have without being asked for, only what has gradients is run. */
static int run_cases(struct wlb_device *device, const struct types *types, const char *only,
                     const struct check_case *cases, int count, int *passed)
{
	int trials = 0;
	for (int c = 0; c < count; c++)
		for (int s = 0; is_chosen(&cases[c], only) && s < cases[c].shape_count; s++) {
			if (types->gradients != WLB_FLOAT32 && !has_gradients(&cases[c], &cases[c].shapes[s]))
				continue;
			trials++;
			if (device != NULL)
				*passed += run_trial(device, &cases[c], &cases[c].shapes[s]);
		}
	return trials;
}

int wlb_check_kernels(struct wlb_device *device, const char *only, int *passed, int *failed)
{
	static const struct types TYPES[] = {
		{WLB_FLOAT32, WLB_FLOAT32}, {WLB_BFLOAT16, WLB_FLOAT32}, {WLB_BFLOAT16, WLB_BFLOAT16}};
	struct wlb_device ignored = {0}, *const set = device != NULL ? device : &ignored;
	const struct types before = {set->compute, set->gradients};
	int trials = 0, good = 0;
	for (size_t i = 0; i < sizeof(TYPES) / sizeof(TYPES[0]); i++) {
		set->compute = TYPES[i].compute;
		set->gradients = TYPES[i].gradients;
		trials += run_cases(device, &TYPES[i], only, CHECK_CASES, CHECK_CASE_COUNT, &good);
		trials += run_cases(device, &TYPES[i], only, CHECK_LOSS_CASES, CHECK_LOSS_CASE_COUNT, &good);
		trials += run_cases(device, &TYPES[i], only, CHECK_VECTOR_CASES, CHECK_VECTOR_CASE_COUNT, &good);
	}
	set->compute = before.compute;
	set->gradients = before.gradients;
	if (device != NULL) {
		*passed += good;
		*failed += trials - good;
	}
	return trials;
}
