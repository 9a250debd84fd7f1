/* The files that a run writes: the folder of its checkpoints and the file of its metrics. */
#ifndef WORKER_TRAIN_OUTPUTS_H
#define WORKER_TRAIN_OUTPUTS_H

#include "worker/checkpoint/save_lock.h"
#include "worker/record/metrics.h"

/* Makes the folder, locks it for the run, of which this process is on `node`, and opens the file; NULL: the run has
 * none. Returns 0; -1 where a path cannot be used, this user may not write there or another run saves there, which each
 * later try finds again; WLB_UNREADABLE (worker/data/input.h) where the system cannot write now. *metrics receives the
 * file, if any. */
int wlb_outputs_open(const char *save, const char *node, const char *metrics_file, struct wlb_save_lock *lock,
                     struct wlb_metrics **metrics, struct wlb_error *error);

#endif
