/*
 * The index of a group of shards (shard_group.h): the file index.json in the group's folder, with the lists of its
 * shards and of their blocks. Where a checkpoint has more than one group its manifest lists the indexes, with size and
 * checksum, and of the blocks only what each group as a whole holds; so a rank reads the lists of few shards, and the
 * first rank of each group writes its index.
 */
#ifndef WORKER_CHECKPOINT_SHARD_INDEX_H
#define WORKER_CHECKPOINT_SHARD_INDEX_H

#include <jansson.h>

#include "worker/checkpoint/weights.h"

/* The groups of so many shards. */
int wlb_shard_groups(int shards);

/* Reads back the headers of a group's shards, of `shards` of the checkpoint, and writes what they hold into the group's
 * index. Syncs the group's folder. */
int wlb_shard_index_write(const char *folder, int group, int shards, struct wlb_error *error);
/* Reads the indexes of all groups: appends them and the blocks of each group to `whole`, which is to be finished, and
 * adds the sizes of indexes and shards to *bytes. */
int wlb_shard_indexes_collect(const char *folder, int shards, struct wlb_weights *whole, int64_t *bytes,
                              struct wlb_error *error);

/* Formats the indexes for the manifest, NULL where memory is short; and reads that into `whole`. */
json_t *wlb_shard_indexes_format(const struct wlb_weights *whole);
int wlb_shard_indexes_parse(json_t *json, struct wlb_weights *whole, struct wlb_error *error);

/* The functions below return -1 where an index is missing or wrong, WLB_UNREADABLE (input.h) where it cannot be read
 * now. `whole` is finished, and has indexes. */

/* Compares size and checksum of an index with those in the manifest. */
int wlb_shard_index_check(const char *folder, const struct wlb_weights *whole, int group, struct wlb_error *error);
/* Reads an index, which must have what the manifest says, into `list`, sorted. `list` must be zeroed; the caller frees
 * it, also on error. */
int wlb_shard_index_read(const char *folder, const struct wlb_weights *whole, int group, struct wlb_weights *list,
                         struct wlb_error *error);

typedef int wlb_shard_list_visit(void *context, struct wlb_weights *list, struct wlb_error *error);
/* Calls the function with the files and blocks of each group in turn; with those of `whole` where it has no indexes.
 * Returns what the function or wlb_shard_index_read did first other than 0. */
int wlb_shard_lists_visit(const char *folder, struct wlb_weights *whole, wlb_shard_list_visit *visit, void *context,
                          struct wlb_error *error);

#endif
