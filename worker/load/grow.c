#include "worker/load/grow.h"

#include <stdlib.h>

int wlb_grow(void **array, size_t *room, size_t count, size_t size, struct wlb_error *error)
{
	if (count <= *room)
		return 0;
	size_t wanted = count + count / 2;
	void *grown = reallocarray(*array, wanted, size);
	if (grown == NULL)
		return wlb_fail(error, "out of memory for a step: %zu elements of %zu bytes", wanted, size);
	*array = grown;
	*room = wanted;
	return 0;
}
