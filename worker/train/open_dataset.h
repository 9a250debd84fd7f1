/* Opens a dataset on all ranks. Its indexes are checked once on each node: the node's ranks share the work and the
 * verdict. */
#ifndef WORKER_TRAIN_OPEN_DATASET_H
#define WORKER_TRAIN_OPEN_DATASET_H

#include "worker/data/dataset.h"
#include "worker/launch/launch.h"
#include "worker/train/file_work.h"

/* Collective. Each rank checks its share of each index of the choice. Returns 0, or one of the failures of agree.h: of
 * several errors in the indexes the message is that of the first, in the order in which one process finds them.
 * *dataset is set where the files are open, also after a failure of all ranks; *failure is what this rank has found, 0,
 * -1 or WLB_UNREADABLE as wlb_dataset_open. */
int wlb_open_dataset(const struct wlb_launch *launch, const struct wlb_file_waiting *files,
                     const struct wlb_dataset_choice *choice, struct wlb_dataset **dataset, int *failure,
                     struct wlb_error *error);

#endif
