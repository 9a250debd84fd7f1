/*
 * The weights of a published model, as Hugging Face's folders have them: model.safetensors, or the files that
 * model.safetensors.index.json names; F64, F32, BF16, F16. Nothing in the folder is trusted, and weights that are
 * pickled Python objects are refused: to read one can run any program.
 */
#ifndef WORKER_CHECKPOINT_PUBLISHED_H
#define WORKER_CHECKPOINT_PUBLISHED_H

#include "worker/checkpoint/weights.h"

#define WLB_PUBLISHED_FILE "model.safetensors"
#define WLB_PUBLISHED_INDEX "model.safetensors.index.json"

/* Lists the tensors of all files, whose headers it reads, without those that are no weights (angles that old versions
 * of Transformers stored). `weights` must be zeroed; the caller frees it, also on error. Returns -1 where the folder is
 * wrong, WLB_UNREADABLE (worker/data/input.h) where it cannot be read now. */
int wlb_published_open(const char *folder, struct wlb_weights *weights, struct wlb_error *error);

/* Checks that the folder has the tensors of which `parts` are blocks, with their shapes, and no others: of these only a
 * head is passed over, where the model takes the embedding for it. The parts are of the whole model and need no data;
 * several may be of one tensor. Reads no tensor. The message names tensor, file and shape. Returns as
 * wlb_published_open. */
int wlb_published_check(const char *folder, const struct wlb_tensor_part *parts, int count, struct wlb_error *error);

#endif
