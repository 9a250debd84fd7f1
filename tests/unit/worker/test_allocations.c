/*
 * wlb-worker train that fails where a step in the steady state allocates: all memory of a step is allocated before the
 * first step, or by the tenth. Takes the same arguments, for 20 steps of similar documents.
 *
 * The linker replaces the library's functions by those below (--wrap) in all code of WLB; allocations inside MPI,
 * OpenBLAS and the C library are not counted. Those of all threads are, from the end of the tenth step on.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/train/train.h"
#include "worker/train/trainer.h"

enum { FIRST_STEP = 10, LAST_STEP = 20 };

static atomic_int counting;
static atomic_long allocations;
static atomic_int steps;

static void count(const char *function, size_t bytes)
{
	if (atomic_load(&counting) && atomic_fetch_add(&allocations, 1) < 10)
		fprintf(stderr, "test_allocations: %s of %zu bytes after step %d\n", function, bytes,
		        atomic_load(&steps));
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_reallocarray(void *old, size_t count, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
int __real_posix_memalign(void **memory, size_t alignment, size_t bytes);
char *__real_strdup(const char *text);
int __real_wlb_trainer_step(struct wlb_trainer *trainer, struct wlb_error *error);

void *__wrap_malloc(size_t bytes)
{
	count("malloc", bytes);
	return __real_malloc(bytes);
}

void *__wrap_calloc(size_t elements, size_t bytes)
{
	count("calloc", elements * bytes);
	return __real_calloc(elements, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
	count("realloc", bytes);
	return __real_realloc(old, bytes);
}

void *__wrap_reallocarray(void *old, size_t elements, size_t bytes)
{
	count("reallocarray", elements * bytes);
	return __real_reallocarray(old, elements, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
	count("aligned_alloc", bytes);
	return __real_aligned_alloc(alignment, bytes);
}

int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes)
{
	count("posix_memalign", bytes);
	return __real_posix_memalign(memory, alignment, bytes);
}

char *__wrap_strdup(const char *text)
{
	count("strdup", strlen(text) + 1);
	return __real_strdup(text);
}

int __wrap_wlb_trainer_step(struct wlb_trainer *trainer, struct wlb_error *error)
{
	int rc = __real_wlb_trainer_step(trainer, error);
	int done = atomic_fetch_add(&steps, 1) + 1;
	atomic_store(&counting, done >= FIRST_STEP && done < LAST_STEP);
	return rc;
}

int main(int argc, char **argv)
{
	int code = wlb_train(argc, argv);
	if (code != 0)
		return code;
	if (atomic_load(&steps) < LAST_STEP) {
		fprintf(stderr, "test_allocations: %d steps, %d are needed\n", atomic_load(&steps), LAST_STEP);
		return 1;
	}
	if (atomic_load(&allocations) == 0)
		return 0;
	fprintf(stderr, "test_allocations: %ld allocations in %d steps\n", atomic_load(&allocations),
	        LAST_STEP - FIRST_STEP);
	return 1;
}
