/* The files of a near checkpoint: near_folder.h says which they are. */
#ifndef WORKER_CHECKPOINT_NEAR_FILES_H
#define WORKER_CHECKPOINT_NEAR_FILES_H

#include "worker/checkpoint/checkpoint.h"

enum wlb_near_kind { WLB_NEAR_SHARD, WLB_NEAR_COPIES, WLB_NEAR_KINDS };
void wlb_near_file(const char *path, enum wlb_near_kind kind, int shard, char file[4096]);

/* Makes the folder of a checkpoint, which may exist. */
int wlb_near_make(const char *path, struct wlb_error *error);
/* Writes packer.bin and manifest.json to it. */
int wlb_near_write_facts(const char *path, const struct wlb_checkpoint_facts *facts, const void *packer_state,
                         size_t packer_bytes, struct wlb_error *error);
/* Writes a file of a rank from its parts. */
int wlb_near_write_parts(const char *file, const struct wlb_tensor_part *parts, int count, struct wlb_error *error);
/* Writes a file of a rank from its bytes, if they are those that were saved. */
int wlb_near_write_bytes(const char *file, const void *data, size_t bytes, struct wlb_error *error);
/* Returns 0 where all tensors of a file of a rank are those that were saved, else -1 with the reason. */
int wlb_near_verify(const char *file, struct wlb_error *error);

/* Returns 0 where a file has exactly these parts: tensors, blocks and ranges, of whatever values; else -1. */
int wlb_near_matches(const char *file, const struct wlb_tensor_part *parts, int count, struct wlb_error *error);
/* Reads the data of these parts, which the file has. -1 also where they are not those that were saved. */
int wlb_near_read_parts(const char *file, const struct wlb_tensor_part *parts, int count, struct wlb_error *error);

#endif
