/* layer_types of a model's config.json and of checkpoints: which layers have the model's window. */
#ifndef COMMON_LAYER_TYPES_H
#define COMMON_LAYER_TYPES_H

#include <jansson.h>

#include "libwlb/wlb.h"

/* Returns a new list with "sliding_attention" or "full_attention" for each layer, or NULL if out of memory. */
json_t *wlb_layer_types_json(const struct wlb_model *model);

/* Reads such a list, of a model whose num_hidden_layers is at most WLB_LAYERS_MAX and whose sliding_window is set.
 * Returns -1 with value and rule for another list, and for a window of no width. */
int wlb_layer_types_parse(const json_t *types, struct wlb_model *model, struct wlb_error *error);

#endif
