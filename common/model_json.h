/* A model as JSON, in checkpoints and records: Hugging Face's names of its fields. */
#ifndef COMMON_MODEL_JSON_H
#define COMMON_MODEL_JSON_H

#include <jansson.h>

#include "libwlb/wlb.h"

/* Returns a new object, or NULL if out of memory. Fields in which the model is as Llama 1 are left out, but for its
 * sizes and model_type. */
json_t *wlb_model_json(const struct wlb_model *model);

/* Reads such an object; without model_type, as 0.2.0 wrote it, the model is a Llama. Returns -1 with field and rule
 * where one is missing, has another type, or wlb_model_check refuses it. */
int wlb_model_json_parse(json_t *json, struct wlb_model *model, struct wlb_error *error);

#endif
