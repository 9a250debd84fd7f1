/* manifest.json of a checkpoint: its facts, its files, and which block of which tensor each shard holds. */
#ifndef WORKER_CHECKPOINT_MANIFEST_H
#define WORKER_CHECKPOINT_MANIFEST_H

#include <jansson.h>

#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/weights.h"

#define WLB_MANIFEST_NAME "manifest.json"
#define WLB_PACKER_NAME "packer.bin"

/* Writes FOLDER/manifest.json for weights that were scanned from shards 0, 1, ... and a packer's state of packer_bytes
 * (-1: there is none); *bytes: its size. */
int wlb_manifest_write(const char *folder, const struct wlb_checkpoint_facts *facts, const struct wlb_weights *weights,
                       int64_t packer_bytes, int64_t *bytes, struct wlb_error *error);

/* Returns the facts as the manifest has them, in JSON; NULL where memory is short. */
json_t *wlb_manifest_format_facts(const struct wlb_checkpoint_facts *facts);

/* Reads FOLDER/manifest.json. Returns -1 where it is missing or wrong, WLB_UNREADABLE (worker/data/input.h) where it
 * cannot be read now. Each of facts, weights and packer_bytes may be NULL. Every number is checked; the files
 * in its list are not examined. `weights` must be zeroed; the caller frees it, also on error. */
int wlb_manifest_read(const char *folder, struct wlb_checkpoint_facts *facts, struct wlb_weights *weights,
                      int64_t *packer_bytes, struct wlb_error *error);

/* Directories of many thousands of files are slow on many file systems. */
enum { WLB_SHARDS_OF_FOLDER = 1024 };
/* The name of a shard's file: "shard_00003.safetensors". From the WLB_SHARDS_OF_FOLDER-th shard on each so many are in
 * a folder of their own, whose name is before it: "part_001/shard_01024.safetensors". */
void wlb_manifest_shard_name(int shard, char name[48]);

#endif
