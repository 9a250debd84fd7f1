#include "coordinator/wlbd/http/body_memory.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>

enum { ALIGNMENT = 16, BLOCK_MIN_BYTES = 4096 };

struct wlbd_body_block {
	struct wlbd_body_block *before;
	size_t bytes;
	_Alignas(ALIGNMENT) char memory[];
};

static bool is_open;
static _Thread_local struct wlbd_body_memory *current;

/* Returns NULL if out of memory. */
static struct wlbd_body_block *add_block(struct wlbd_body_memory *memory, size_t bytes)
{
	size_t size = bytes > BLOCK_MIN_BYTES ? bytes : BLOCK_MIN_BYTES;
	struct wlbd_body_block *block = malloc(sizeof(*block) + size);
	if (block == NULL)
		return NULL;
	block->before = memory->newest;
	block->bytes = size;
	memory->newest = block;
	memory->used_bytes = 0;
	return block;
}

static void *allocate(size_t bytes)
{
	struct wlbd_body_memory *memory = current;
	if (memory == NULL)
		return malloc(bytes);
	size_t needed = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	struct wlbd_body_block *block = memory->newest;
	if (needed < bytes)
		return NULL;
	if ((block == NULL || needed > block->bytes - memory->used_bytes) &&
	    (block = add_block(memory, needed)) == NULL)
		return NULL;
	void *allocated = block->memory + memory->used_bytes;
	memory->used_bytes += needed;
	return allocated;
}

static void release(void *allocated)
{
	if (current == NULL)
		free(allocated);
}

void wlbd_body_memory_open(void)
{
	json_set_alloc_funcs(allocate, release);
	is_open = true;
}

void wlbd_body_memory_begin(struct wlbd_body_memory *memory, size_t bytes)
{
	if (is_open && add_block(memory, bytes) != NULL)
		current = memory;
}

void wlbd_body_memory_end(void)
{
	current = NULL;
}

void wlbd_body_memory_free(struct wlbd_body_memory *memory)
{
	while (memory->newest != NULL) {
		struct wlbd_body_block *block = memory->newest;
		memory->newest = block->before;
		free(block);
	}
}
