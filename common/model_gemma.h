/* What only the config.json of Gemma has. */
#ifndef COMMON_MODEL_GEMMA_H
#define COMMON_MODEL_GEMMA_H

#include <jansson.h>

#include "libwlb/wlb.h"

/* Sets the fields of a model of a Gemma family, which the other families lack: scale and soft caps of scores and
 * logits, and the angles of layers with a window. Absent ones are those of Gemma2Config and
 * Gemma3TextConfig of Transformers; null caps there are none. Returns -1 with field, value and rule. */
int wlb_model_gemma_read(const json_t *config, struct wlb_model *model, struct wlb_error *error);

#endif
