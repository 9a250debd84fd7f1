/* The keys that a model's config.json may have. */
#ifndef COMMON_MODEL_KEYS_H
#define COMMON_MODEL_KEYS_H

#include <jansson.h>

#include "libwlb/wlb.h"

/* Refuses a value of a known key that changes what the model computes to what cannot be trained; with `of_shape`, for
 * planning, what changes matrices or their number alone. What `family` has is not refused; NULL: it is not known. */
int wlb_model_keys_check(const json_t *config, int of_shape, const struct wlb_family_row *family,
                         struct wlb_error *error);

/* Refuses a key that is not known, unless it is null or begins with "_": a new kind of model would train as another
 * without a word. */
int wlb_model_keys_refuse_unknown(const json_t *config, struct wlb_error *error);

#endif
