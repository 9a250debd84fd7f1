/*
 * Near checkpoints: what ranks keep, in a folder of a node, such as one of its RAM disk, instead of a shared file
 * system. DIR/wlb-JOB-NODE/KEY/step_00000060.8.ID/ has, of those ranks whose shards are kept on the node:
 *  - shard_00003.safetensors, the shard that the rank writes to an ordinary checkpoint, byte by byte;
 *  - copies_00003.safetensors, what the rank keeps and another one owns; there is none where that is nothing.
 * And packer.bin and manifest.json as in an ordinary checkpoint, but that lists no shards.
 *
 * KEY stands for the directory of the ordinary checkpoints, 8 is the number of all shards, and ID is that of the start
 * of the run. The checkpoint is whole where each shard is on some node. All files get their names when they are
 * complete. The folder of the job has mode 0700; /dev/shm/wlb-JOB-NODE is that folder or a link to it, so that the
 * epilog of the job (spank/near_copies.h) finds it.
 */
#ifndef WORKER_CHECKPOINT_NEAR_FOLDER_H
#define WORKER_CHECKPOINT_NEAR_FOLDER_H

#include "worker/checkpoint/checkpoint.h"

/* Of one near checkpoint. */
struct wlb_near_name {
	int64_t step;
	int shards;
	char id[64];
};

/* Makes DIR/wlb-JOB-NODE/KEY for the directory `save`, and the link to it. Refuses a folder that is a link, or another
 * user's. Any process of the node may call it at the same time as others. */
int wlb_near_folder_open(const char *dir, const char *save, const char *node, char folder[4096],
                         struct wlb_error *error);
/* Removes it, and that of the job and the link where no other is in them. */
int wlb_near_folder_remove(const char *folder, struct wlb_error *error);

enum { WLB_NEAR_LISTED_MAX = 16 };
/* Lists the newest checkpoints of the folder, newest first. Returns their number, or -1. */
int wlb_near_list(const char *folder, struct wlb_near_name names[WLB_NEAR_LISTED_MAX], struct wlb_error *error);
/* Removes all of the folder but this checkpoint; NULL: all. */
int wlb_near_remove_others(const char *folder, const struct wlb_near_name *kept, struct wlb_error *error);
int wlb_near_remove(const char *folder, const struct wlb_near_name *name, struct wlb_error *error);

/* A path of a folder is shorter than 4096 by enough for this one and for the files in it. */
void wlb_near_path(const char *folder, const struct wlb_near_name *name, char path[4096]);

#endif
