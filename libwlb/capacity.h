/* Memory that is kept from one use to the next, and soon grows no more. */
#ifndef LIBWLB_CAPACITY_H
#define LIBWLB_CAPACITY_H

#include <stddef.h>

/* Zero it before the first use; used for elements of one size only. */
struct wlb_room {
	void *memory;
	size_t count; /* elements it has room for */
};

/* `count` elements of `size` bytes, all zero, in place of what was there; with half as much again where it has to grow.
 * Owned by the room, valid until the next use. NULL without memory, the room being as it was. */
void *wlb_room_take(struct wlb_room *room, size_t count, size_t size);
void wlb_room_free(struct wlb_room *room);

#endif
