/* manifest.json of a checkpoint: its facts, its files, and which block of which tensor each shard holds. */
#ifndef WORKER_CHECKPOINT_MANIFEST_H
#define WORKER_CHECKPOINT_MANIFEST_H

#include <jansson.h>

#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/weights.h"

#define WLB_MANIFEST_NAME "manifest.json"
#define WLB_PACKER_NAME "packer.bin"

/* Writes FOLDER/manifest.json for weights that were scanned from shards 0, 1, ..., or that have the indexes of their
 * groups, and a packer's state of packer_bytes (-1: there is none); *bytes: its size. */
int wlb_manifest_write(const char *folder, const struct wlb_checkpoint_facts *facts, const struct wlb_weights *weights,
                       int64_t packer_bytes, int64_t *bytes, struct wlb_error *error);

/* Returns the facts as the manifest has them, in JSON; NULL where memory is short. */
json_t *wlb_manifest_format_facts(const struct wlb_checkpoint_facts *facts);

/* Writes "rope_theta was 10000.0, is 500000.0; ..." for all keys of a manifest in which two models differ, as much of
 * it as `text` holds. Returns their number; -1 where memory is short. */
int wlb_manifest_compare_models(const struct wlb_model *was, const struct wlb_model *is, char *text, size_t size);

/* Reads FOLDER/manifest.json. Returns -1 where it is missing or wrong, WLB_UNREADABLE (worker/data/input.h) where it
 * cannot be read now. Each of facts, weights and packer_bytes may be NULL. Every number is checked; the files
 * and indexes in its list are not examined. `weights` must be zeroed; the caller frees it, also on error. */
int wlb_manifest_read(const char *folder, struct wlb_checkpoint_facts *facts, struct wlb_weights *weights,
                      int64_t *packer_bytes, struct wlb_error *error);

#endif
