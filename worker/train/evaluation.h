/*
 * The loss on documents that are not trained, computed by the ranks of the run in its layout, without a gradient. Each
 * evaluation takes the same documents, the first of a dataset in the order that its seed gives, packed as for training.
 */
#ifndef WORKER_TRAIN_EVALUATION_H
#define WORKER_TRAIN_EVALUATION_H

#include "worker/load/loader.h"
#include "worker/record/metrics.h"
#include "worker/train/file_work.h"
#include "worker/train/pipeline.h"

struct wlb_evaluation {
	struct wlb_device *device;
	struct wlb_dataset *dataset; /* NULL: there are no evaluations */
	struct wlb_loader *loader;
	int64_t batches; /* of an evaluation */
	double *sum;     /* device: of the loss of this rank's tokens */
};

/* Makes the loader and the memory; the dataset must be set. options->last_step are the batches of an evaluation. */
int wlb_evaluation_open(struct wlb_evaluation *evaluation, struct wlb_device *device, const struct wlb_model *model,
                        const struct wlb_loader_options *options, struct wlb_error *error);
void wlb_evaluation_close(struct wlb_evaluation *evaluation); /* may be zeroed */

/* Evaluates the weights after the last step, which must have been read. Collective; loss and tokens are the same on all
 * ranks. facts->step is not set. Neither weights nor what the next step trains change. Returns -1 where the other ranks
 * do not know of the failure. */
int wlb_evaluation_run(struct wlb_evaluation *evaluation, struct wlb_pipeline *pipeline,
                       const struct wlb_file_waiting *files, struct wlb_evaluation_facts *facts,
                       struct wlb_error *error);

#endif
