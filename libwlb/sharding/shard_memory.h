/* Memory of a wlb_shards, kept from one micro-batch to the next. */
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

/* What wlb_shards.memory is: the caller's shards lie in `kept`, and new ones are made in `made`, so that those stay as
 * they are until these are whole. All else is in use during a call only. Allocated zeroed. */
struct wlb_shard_memory {
	struct wlb_shard_result kept;
	struct wlb_shard_result made[2]; /* adaptive makes both */
	struct wlb_buffer first_chunk, longer, documents, pairs;
	struct wlb_buffer spans, newest, keys, next;
};

#endif
