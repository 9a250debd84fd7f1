/* The JSON lists of shards and of tensors' blocks, which the manifest and the indexes have. */
#ifndef WORKER_CHECKPOINT_SHARD_LISTS_H
#define WORKER_CHECKPOINT_SHARD_LISTS_H

#include <jansson.h>

#include "worker/checkpoint/weights.h"

/* The name of a shard's file: "shard_00003.safetensors" in the first group (shard_group.h), after it with the group's
 * folder: "part_001/shard_01024.safetensors". */
void wlb_shard_name(int shard, char name[48]);
/* The same of the index of a group: "index.json", "part_001/index.json". */
void wlb_shard_index_name(int group, char name[48]);

/* Formats the list of files, of which the first one has the number `first` among all shards; NULL where memory is
 * short. */
json_t *wlb_shard_list_format(const struct wlb_weights *weights, int first);
/* Formats the shapes of the tensors and their blocks; NULL where memory is short. */
json_t *wlb_tensor_list_format(const struct wlb_weights *weights);

/* Read the same into `weights`, where they check every name and number: the files, and the blocks, each of one of
 * file_count files or indexes. wlb_weights_sort or wlb_weights_finish must follow. */
int wlb_shard_list_parse(const char *folder, json_t *shards, int first, struct wlb_weights *weights,
                         struct wlb_error *error);
int wlb_tensor_list_parse(json_t *tensors, int file_count, struct wlb_weights *weights, struct wlb_error *error);

#endif
