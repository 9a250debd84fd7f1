/* Declares the memory of struct wlb_shards, which is kept from one micro-batch to the next. */
#ifndef LIBWLB_SHARDING_SHARD_MEMORY_H
#define LIBWLB_SHARDING_SHARD_MEMORY_H

#include <stdint.h>

#include "libwlb/capacity.h"
#include "libwlb/wlb.h"

/* Shards and the memory of their arrays. */
struct wlb_shard_result {
	struct wlb_shards shards;
	struct wlb_buffer shards_buffer, first_shard_buffer, first_row_buffer;
};

/* The type of wlb_shards.memory. `kept` holds the caller's shards; new shards are built in `made`, so that the caller's
 * are unchanged until the new ones are complete. All other members are used during a call only. Allocated zeroed. */
struct wlb_shard_memory {
	struct wlb_shard_result kept;
	struct wlb_shard_result made[2]; /* adaptive builds both */
	struct wlb_buffer first_chunk, longer, documents, pairs;
	struct wlb_buffer spans, newest, keys, next;
};

#endif
