#include "coordinator/wlbd/main/memory.h"

#include <malloc.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

enum {
	MAPPED_BYTES = 256 << 10,
	TRIM_BYTES = 4 << 20,
};

void wlbd_memory_configure(void)
{
	mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES);
	mallopt(M_ARENA_MAX, 1);
}

/* Returns 0 where the system does not tell. */
static size_t resident_bytes(void)
{
	size_t resident_pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");
	if (file == NULL)
		return 0;
	if (fscanf(file, "%*u %zu", &resident_pages) != 1)
		resident_pages = 0;
	fclose(file);
	return resident_pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Whether `now` is TRIM_BYTES above the least since the last call of malloc_trim. */
static int has_grown(size_t *min, size_t now)
{
	if (now < *min)
		*min = now;
	return now - *min > TRIM_BYTES;
}

/* malloc continues to count as free what malloc_trim has returned: what is allocated from it and freed within a second
 * changes only how much is resident. */
void wlbd_memory_return_freed(void)
{
	static size_t min_free_bytes, min_resident_bytes;
	int more_is_free = has_grown(&min_free_bytes, mallinfo2().fordblks);
	if (!has_grown(&min_resident_bytes, resident_bytes()) && !more_is_free)
		return;
	malloc_trim(0);
	min_free_bytes = mallinfo2().fordblks;
	min_resident_bytes = resident_bytes();
}
