#include "coordinator/wlbd/main/memory.h"

#include <malloc.h>
#include <stddef.h>

enum {
	MAPPED_BYTES = 256 << 10,
	TRIM_BYTES = 4 << 20,
};

void wlbd_memory_configure(void)
{
	mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES);
	mallopt(M_ARENA_MAX, 1);
}

/* malloc continues to count as free what malloc_trim has returned: only what was freed since then is a reason to call
 * it again. */
void wlbd_memory_return_freed(void)
{
	static size_t left_bytes;
	size_t free_bytes = mallinfo2().fordblks;
	if (free_bytes < left_bytes)
		left_bytes = free_bytes;
	if (free_bytes - left_bytes <= TRIM_BYTES)
		return;
	malloc_trim(0);
	left_bytes = mallinfo2().fordblks;
}
