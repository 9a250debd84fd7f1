/* The message of a run that ends for lack of device memory. */
#ifndef WORKER_TRAIN_OUT_OF_MEMORY_H
#define WORKER_TRAIN_OUT_OF_MEMORY_H

#include "worker/train/trainer.h"

/* Where the device has refused memory and this rank has a message, adds to it what the rank has allocated, what the
 * plan had predicted (wlb_memory_stage_of, Korthikanti et al. 2022) and what to change. The message is unchanged
 * otherwise. */
void wlb_out_of_memory_explain(const struct wlb_trainer *trainer, struct wlb_error *error);

#endif
