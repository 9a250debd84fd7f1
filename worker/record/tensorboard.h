/*
 * The scalars of a run as an event file of TensorBoard: those of steps and of evaluations, under the tags of
 * Megatron-LM where it has one (megatron/training/training.py), else under the names of the step's record.
 *
 * A thread writes the file as soon as there is something to write. Training never waits for it: what the file system
 * takes too slowly waits in memory of bounded size, and what has no room there is left out. Where the file cannot be
 * written, training goes on without it. Both are said once, on standard error.
 */
#ifndef WORKER_RECORD_TENSORBOARD_H
#define WORKER_RECORD_TENSORBOARD_H

#include <stdint.h>

#include "libwlb/wlb.h"
#include "worker/record/metrics.h"

struct wlb_tensorboard;

/* Makes the folder, and a new file there: an attempt adds a file to those of earlier ones. Returns NULL with errno set
 * on failure. */
struct wlb_tensorboard *wlb_tensorboard_open(const char *folder, struct wlb_error *error);
/* Training begins with the step after this one. TensorBoard leaves out what earlier files say of later steps. */
void wlb_tensorboard_start(struct wlb_tensorboard *tensorboard, int64_t step);
void wlb_tensorboard_step(struct wlb_tensorboard *tensorboard, const struct wlb_step_facts *facts);
void wlb_tensorboard_evaluation(struct wlb_tensorboard *tensorboard, const struct wlb_evaluation_facts *facts);
/* Waits for 10 s at most until all is written. NULL allowed. */
void wlb_tensorboard_close(struct wlb_tensorboard *tensorboard);

#endif
