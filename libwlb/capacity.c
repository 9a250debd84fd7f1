#include "libwlb/capacity.h"

#include <stdlib.h>
#include <string.h>

int wlb_grow(void **array, size_t *capacity, size_t count, size_t size)
{
	if (*array != NULL && count <= *capacity)
		return 0;
	size_t wanted = count + count / 2 + 1;
	void *grown = reallocarray(*array, wanted, size);
	if (grown == NULL)
		return -1;
	*array = grown;
	*capacity = wanted;
	return 0;
}

void *wlb_buffer_zeroed(struct wlb_buffer *buffer, size_t count, size_t size)
{
	if (wlb_grow(&buffer->memory, &buffer->capacity, count, size) < 0)
		return NULL;
	return memset(buffer->memory, 0, count * size);
}

void wlb_buffer_free(struct wlb_buffer *buffer)
{
	free(buffer->memory);
	*buffer = (struct wlb_buffer){0};
}
