/* Reads the config.json (Hugging Face) of a Llama-family model. */
#ifndef COMMON_MODEL_CONFIG_H
#define COMMON_MODEL_CONFIG_H

#include "libwlb/wlb.h"

enum wlb_model_use {
	WLB_MODEL_TO_TRAIN, /* by wlb-worker */
	WLB_MODEL_TO_PLAN,  /* for another trainer: the shape is read alone */
};

/* Defaults are Hugging Face's LlamaConfig (num_key_value_heads = num_attention_heads, head_dim = hidden_size / heads,
 * rms_norm_eps 1e-6, rope_theta 10000, tie_word_embeddings false). Required: hidden_size, intermediate_size,
 * num_hidden_layers, num_attention_heads, vocab_size. To train, refuses what changes the computation of Llama (another
 * model_type or architecture, scaled or partial rotary positions, biases, windows, ...) and each key that is not known,
 * unless it is null or begins with "_". To plan, takes the models of model_type mistral, qwen2 and qwen3 too, and
 * passes over what changes neither matrices nor their number: positions, dropout, biases, norms of queries and keys,
 * keys that are not known. Refuses experts and latent attention in any case. The message names file, field, value and
 * rule. Ends in wlb_model_check. */
int wlb_model_config_read(const char *path, enum wlb_model_use use, struct wlb_model *model, struct wlb_error *error);

#endif
