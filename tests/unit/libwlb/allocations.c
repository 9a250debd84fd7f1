#include "tests/unit/libwlb/allocations.h"

#include <stdlib.h>

long allocations_left = -1;

void *__real_calloc(size_t count, size_t size);
void *__real_reallocarray(void *array, size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_reallocarray(void *array, size_t count, size_t size);

static int refused(void)
{
	return allocations_left >= 0 && allocations_left-- == 0;
}

void *__wrap_calloc(size_t count, size_t size)
{
	return refused() ? NULL : __real_calloc(count, size);
}

void *__wrap_reallocarray(void *array, size_t count, size_t size)
{
	return refused() ? NULL : __real_reallocarray(array, count, size);
}
