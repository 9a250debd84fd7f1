/* Whether the tensors of the checkpoint to resume from are those that were saved, and another one where not. */
#ifndef WORKER_TRAIN_INTACT_CHECKPOINT_H
#define WORKER_TRAIN_INTACT_CHECKPOINT_H

#include "worker/checkpoint/checkpoint.h"
#include "worker/train/trainer.h"

/* Collective. Each rank checks its share of the checkpoint (wlb_checkpoint_check_before_reading). Sets *damaged, the
 * same on all ranks, after a line on stderr that says which file or tensor is. Returns 0 or one of the failures. */
int wlb_trainer_verify(struct wlb_trainer *trainer, wlb_checkpoint_share_check *check, int *damaged,
                       struct wlb_error *error);
/* Collective. The plan's checkpoint becomes the newest older complete one, with a record of the attempt. Rank 0 says on
 * stderr what is damaged in the file; NULL: it was said. Returns 0 or one of the failures, with exit_code set where
 * none is left. */
int wlb_trainer_take_older(struct wlb_trainer *trainer, const char *damaged_file, struct wlb_error *error);

#endif
