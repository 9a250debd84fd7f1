/* Rotary positions of a model's config.json. */
#ifndef COMMON_MODEL_ROPE_H
#define COMMON_MODEL_ROPE_H

#include <jansson.h>

#include "libwlb/wlb.h"

/* Sets rope_theta, rope_scaling, rotary_dim and rope_local_base_freq of a model whose other fields are read: from
 * rope_theta, partial_rotary_factor and rope_scaling, or, since Transformers 5, rope_parameters, which has all of them.
 * Defaults are Transformers': the type "default", beta_fast 32, beta_slow 1, the attention factor of the paper of YaRN,
 * max_position_embeddings for original_max_position_embeddings. Refuses types whose frequencies change with the length
 * of a sequence, and keys that are not known. */
int wlb_model_rope_read(const json_t *config, struct wlb_model *model, struct wlb_error *error);

#endif
