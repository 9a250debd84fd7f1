/* Reads the config.json (Hugging Face) of a model whose family libwlb knows. */
#ifndef COMMON_MODEL_CONFIG_H
#define COMMON_MODEL_CONFIG_H

#include "libwlb/wlb.h"

enum wlb_model_use {
	WLB_MODEL_TO_TRAIN, /* by wlb-worker */
	WLB_MODEL_TO_PLAN,  /* for another trainer: the shape is read alone */
};

/* `path` is the file, or a folder that has it. The family is that of model_type, of architectures where that is absent,
 * else Llama's; defaults are those of its class in Transformers. Required: hidden_size, intermediate_size,
 * num_hidden_layers, num_attention_heads, vocab_size. To train, refuses what changes the computation to what is not
 * known (model_keys.h, model_rope.h). To plan, passes over what changes neither matrices nor their number, but for
 * sliding_window. Refuses experts, latent attention and other activations but to plan a family that has them. The
 * message names file, field, value and rule. Ends in wlb_model_check. */
int wlb_model_config_read(const char *path, enum wlb_model_use use, struct wlb_model *model, struct wlb_error *error);

#endif
