/* Finds the checkpoint to resume from whose tensors are as they were saved. */
#ifndef WORKER_TRAIN_INTACT_CHECKPOINT_H
#define WORKER_TRAIN_INTACT_CHECKPOINT_H

#include "worker/train/trainer.h"

/* Collective. The ranks read the tensors of the plan's checkpoint, each rank a part of them. Where one is damaged the
 * plan's becomes the newest older one that is not, with a line on stderr and in the record of the attempt. Returns 0 or
 * one of the failures, with exit_code set where none is left. */
int wlb_trainer_find_intact(struct wlb_trainer *trainer, struct wlb_error *error);

#endif
