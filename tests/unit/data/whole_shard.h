/* Shards whose data are in memory together. */
#ifndef TESTS_UNIT_DATA_WHOLE_SHARD_H
#define TESTS_UNIT_DATA_WHOLE_SHARD_H

#include "worker/checkpoint/safetensors.h"

/* Writes a new file of these parts. */
int whole_shard_write(const char *path, const struct wlb_tensor_part *parts, int count, struct wlb_error *error);
/* Writes a shard of a checkpoint that is being saved. */
int whole_shard_save(const struct wlb_save_place *place, int64_t step, int shard, const struct wlb_tensor_part *parts,
                     int count, struct wlb_error *error);
/* Writes the index of each group of a checkpoint whose shards are written; nothing where it has none. */
int whole_shard_save_indexes(const struct wlb_save_place *place, int64_t step, int shards, struct wlb_error *error);

#endif
