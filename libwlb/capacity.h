/* Arrays that are kept from one use to the next, so that repeated use allocates nothing; internal. */
#ifndef LIBWLB_CAPACITY_H
#define LIBWLB_CAPACITY_H

#include <stddef.h>

/* Makes *array hold at least `count` elements of `size` bytes, and half as many again where it has to grow; *capacity
 * is how many it holds. Its elements are unchanged. On success *array is not NULL. Returns -1 if out of memory; both
 * are unchanged. */
int wlb_grow(void **array, size_t *capacity, size_t count, size_t size);

/* Memory of an array whose elements have one size. Zero it before the first use. */
struct wlb_buffer {
	void *memory;
	size_t capacity; /* elements */
};

/* Returns `count` elements of `size` bytes, all zero, which replace the earlier contents. The buffer owns them; they
 * are valid until the next use. Returns NULL if out of memory; the buffer is unchanged. */
void *wlb_buffer_zeroed(struct wlb_buffer *buffer, size_t count, size_t size);
void wlb_buffer_free(struct wlb_buffer *buffer);

#endif
