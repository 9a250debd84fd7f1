/* The weights of a checkpoint as a published model: model.safetensors, or several files and their index. */
#ifndef WORKER_CHECKPOINT_CLI_EXPORT_WEIGHTS_H
#define WORKER_CHECKPOINT_CLI_EXPORT_WEIGHTS_H

#include <signal.h>

#include "worker/checkpoint/weights.h"

struct wlb_export_request {
	const char *folder;            /* is there, and gets the files */
	const struct wlb_model *model; /* of the checkpoint */
	enum wlb_dtype dtype;
	int64_t most_bytes;                          /* of a file of several tensors */
	const volatile sig_atomic_t *is_interrupted; /* not 0: the export must end */
};

struct wlb_export_result {
	int tensors;
	int files;
	int64_t bytes; /* of the tensors */
};

/* Writes the tensors by name, blocks and ranges joined, and those in one that the family has in one, each value rounded
 * to the nearest of the dtype (of two the even one). The headers of `weights` must have been checked, and they must
 * have no moments. Takes memory for a part of one tensor. */
int wlb_export_weights(struct wlb_weights *weights, const struct wlb_export_request *request,
                       struct wlb_export_result *result, struct wlb_error *error);

#endif
