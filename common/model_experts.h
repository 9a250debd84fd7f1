/* The experts of a model's config.json. */
#ifndef COMMON_MODEL_EXPERTS_H
#define COMMON_MODEL_EXPERTS_H

#include <jansson.h>

#include "libwlb/wlb.h"

/* Sets what a family with experts has beside others: counts and sizes of experts, shared ones and first layers without
 * them, and what latent attention has; num_key_value_heads, head_dim and intermediate_size, which hold those of the
 * file, become those of that attention and of one expert. Of a family without experts sets nothing. Defaults are those
 * of the family's class in Transformers, but that kv_lora_rank and the sizes of heads must be given. Refuses a file in
 * which other layers than the first ones have no experts. */
int wlb_model_experts_read(const json_t *config, struct wlb_model *model, struct wlb_error *error);

#endif
