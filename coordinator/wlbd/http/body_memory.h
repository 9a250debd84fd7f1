/*
 * The memory of a parsed body that nobody changes or keeps: jansson makes hundreds of values of a report, each by
 * malloc, which took a third of wlbd's time with 2,048 nodes. Here they lie one after the other in a few blocks, which
 * are released together, without a look at each value.
 */
#ifndef COORDINATOR_WLBD_HTTP_BODY_MEMORY_H
#define COORDINATOR_WLBD_HTTP_BODY_MEMORY_H

#include <stddef.h>

struct wlbd_body_block;

/* Begins as zeros. */
struct wlbd_body_memory {
	struct wlbd_body_block *newest; /* NULL: none is used */
	size_t used_bytes;              /* of the newest */
};

/* Lets jansson take memory as described here. Called once, before threads are started; without it the functions below
 * do nothing. */
void wlbd_body_memory_open(void);

/* What jansson allocates in this thread until wlbd_body_memory_end comes from `memory`, which can hold `bytes` at
 * first, and nothing that it frees is released. */
void wlbd_body_memory_begin(struct wlbd_body_memory *memory, size_t bytes);
void wlbd_body_memory_end(void);

/* Releases all of it; the values in it must not be used any more, nor their references counted down. */
void wlbd_body_memory_free(struct wlbd_body_memory *memory);

#endif
