/* Files of near checkpoints, from the folder of one node to that of another, without a file system that both see. */
#ifndef WORKER_TRAIN_NEAR_TRANSFER_H
#define WORKER_TRAIN_NEAR_TRANSFER_H

#include "worker/comm/messages.h"
#include "worker/train/trainer.h"

/* One file, by its name in the folder of the checkpoint. Where rank `from` has no such file there is none for `to`. */
struct wlb_near_transfer {
	int from, to;
	char name[64];
};

/* Collective, with the same list on all ranks. `path` is the folder of the checkpoint on this rank's node, and is made
 * where it is not there. A shard that is damaged is a failure. Returns 0 or one of the failures; messages may be NULL
 * where the list is empty. */
int wlb_near_transfer(struct wlb_trainer *trainer, struct wlb_messages *messages, const char *path,
                      const struct wlb_near_transfer *list, int count, struct wlb_error *error);

#endif
