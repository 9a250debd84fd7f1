/* Arrays that soon grow no more. */
#ifndef WORKER_LOAD_GROW_H
#define WORKER_LOAD_GROW_H

#include <stddef.h>

#include "libwlb/wlb.h"

/* Makes room for `count` elements of `size` bytes in *array, half as much again where it has to grow. *room counts
 * elements. -1 without memory, the array being as it was. */
int wlb_grow(void **array, size_t *room, size_t count, size_t size, struct wlb_error *error);

#endif
