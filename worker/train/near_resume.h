/* Goes on from a near checkpoint, where one is newer than the checkpoint of the plan. */
#ifndef WORKER_TRAIN_NEAR_RESUME_H
#define WORKER_TRAIN_NEAR_RESUME_H

#include "worker/train/trainer.h"

/* Collective, once the trainer's near and save exist. Where the run continues what it saves (--load is --save) it looks
 * for the newest near checkpoint that is whole, undamaged and later than the plan's checkpoint. The ranks read it from
 * the folders of their nodes, and from each other, where each keeps what the rank of its number kept and no phase may
 * begin; t->step is then that of the checkpoint, and wlb_trainer_resume is not to be called. Otherwise they save it as
 * a checkpoint, from which the plan then goes on. Says why one is not used. Removes all near checkpoints but that from
 * which it went on. Where a folder cannot be read, or not be written, the run goes on without them (near_save.h).
 * Returns 0 or one of the failures. */
int wlb_near_resume(struct wlb_trainer *trainer, struct wlb_error *error);

#endif
