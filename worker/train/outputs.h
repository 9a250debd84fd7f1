/* The files that rank 0 of a run writes: the folder of its checkpoints, and the files of its metrics. */
#ifndef WORKER_TRAIN_OUTPUTS_H
#define WORKER_TRAIN_OUTPUTS_H

#include <limits.h>

#include "worker/checkpoint/save_lock.h"
#include "worker/launch/options.h"
#include "worker/record/metrics.h"
#include "worker/record/tensorboard.h"

/* NULL: the run has none. */
struct wlb_outputs {
	struct wlb_metrics *metrics;
	struct wlb_tensorboard *tensorboard;
};

/* Makes the folders of --save and --trace-dir, locks the first for the run, of which this process is on `node`, and
 * opens the files that the options name. Returns 0; -1 where a path cannot be used, this user may not write there or
 * another run saves there, which each later try finds again; WLB_UNREADABLE (worker/data/input.h) where the system
 * cannot write now. */
int wlb_outputs_open(const struct wlb_train_options *options, const char *attempt_id, const char *node,
                     struct wlb_save_lock *lock, struct wlb_outputs *outputs, struct wlb_error *error);
/* Writes the name of the folder in which the ranks of the attempt trace their steps: one below --trace-dir, or, of a
 * run that is not recorded and has no attempt, that itself. Returns -1 with errno set where it is too long. */
int wlb_trace_folder_name(const struct wlb_train_options *options, const char *attempt_id, char folder[PATH_MAX],
                          struct wlb_error *error);
void wlb_outputs_close(struct wlb_outputs *outputs); /* also of zeros */

#endif
