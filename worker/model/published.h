/* Which tensor of a published model's files has which of ours. */
#ifndef WORKER_MODEL_PUBLISHED_H
#define WORKER_MODEL_PUBLISHED_H

#include "libwlb/wlb.h"
#include "worker/model/tensor_block.h"

enum { WLB_PUBLISHED_NAME_BYTES = 64 };

/* Sets `published` to the name of the tensor in Hugging Face's files that holds ours, and moves the block to its rows
 * there: families with fused tensors have queries, keys and values one below the other in qkv_proj, and gate and up in
 * gate_up_proj. Other tensors have our names, and their blocks stay as they are. Returns -1 where the name is too long
 * for one of ours. */
int wlb_published_block(const struct wlb_model *model, const char *name, char published[WLB_PUBLISHED_NAME_BYTES],
                        struct wlb_tensor_block *block);

#endif
