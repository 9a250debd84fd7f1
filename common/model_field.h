/* Fields of a model's config.json. An absent field and null are alike, as in Hugging Face's files, unless a function
 * says otherwise. The functions that can fail return -1 with field, value and rule. */
#ifndef COMMON_MODEL_FIELD_H
#define COMMON_MODEL_FIELD_H

#include <jansson.h>

#include "libwlb/wlb.h"

enum wlb_config_need { WLB_CONFIG_OPTIONAL, WLB_CONFIG_REQUIRED };

/* "an object", "true": for messages. */
const char *wlb_config_type_name(const json_t *value);

/* The value, which belongs to the object; NULL where it is absent or null. */
const json_t *wlb_config_field(const json_t *object, const char *name);

/* Set *out where the field is there; a count may be written as a real number, 131072.0. */
int wlb_config_count(const json_t *object, const char *name, enum wlb_config_need need, int64_t *out,
                     struct wlb_error *error);
int wlb_config_number(const json_t *object, const char *name, enum wlb_config_need need, double *out,
                      struct wlb_error *error);
int wlb_config_flag(const json_t *object, const char *name, int *out, struct wlb_error *error);

/* Fails because a value is none that can be used. Name and value are printed as JSON in ASCII: they may be of any key.
 */
int wlb_config_refuse(const char *name, const json_t *value, const char *rule, struct wlb_error *error);

#endif
