/* The experts of a model's config.json. */
#ifndef COMMON_MODEL_EXPERTS_H
#define COMMON_MODEL_EXPERTS_H

#include <jansson.h>

#include "libwlb/wlb.h"

/* Sets num_experts, num_experts_per_tok and, of one expert, intermediate_size, which holds that of the file; of a
 * family without experts nothing. Defaults are those of the family's class in Transformers. Refuses a file in which
 * some layers have no experts. */
int wlb_model_experts_read(const json_t *config, struct wlb_model *model, struct wlb_error *error);

#endif
