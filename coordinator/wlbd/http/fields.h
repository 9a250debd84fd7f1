/*
 * Fields of a JSON body, read and checked one by one. Each function returns -1 with a message that names the field, its
 * value and the rule. An optional field that is absent or null leaves *value unchanged.
 */
#ifndef COORDINATOR_WLBD_HTTP_FIELDS_H
#define COORDINATOR_WLBD_HTTP_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libwlb/wlb.h"

enum {
	WLBD_TEXT_MAX = 4096, /* details, reasons, paths */
	WLBD_NAME_MAX = 255,  /* nodes, jobs, users */
	WLBD_NODES_MAX = 65536,
	WLBD_CLAIMED_NODES_MAX = 8192, /* of a job whose nodes Slurm has not said */
	WLBD_RANKS_MAX = 1 << 20,
	WLBD_NODE_RANKS_MAX = 4096,
};

enum wlbd_need {
	WLBD_OPTIONAL,
	WLBD_REQUIRED,
};

/* Returns the body, which must be an object nested no deeper than 32, without duplicate keys; the caller decrefs it.
 * Returns NULL, with the place of the mistake, where it is none. */
json_t *wlbd_body_parse(const char *text, size_t length, struct wlb_error *error);

int wlbd_field_text(const json_t *object, const char *name, enum wlbd_need need, size_t max, const char **value,
                    struct wlb_error *error);
int wlbd_field_integer(const json_t *object, const char *name, enum wlbd_need need, int64_t min, int64_t max,
                       int64_t *value, struct wlb_error *error);
/* A number within [min, max]. */
int wlbd_field_number(const json_t *object, const char *name, enum wlbd_need need, double min, double max,
                      double *value, struct wlb_error *error);
int wlbd_field_boolean(const json_t *object, const char *name, enum wlbd_need need, bool *value,
                       struct wlb_error *error);
int wlbd_field_object(const json_t *object, const char *name, enum wlbd_need need, const json_t **value,
                      struct wlb_error *error);
int wlbd_field_array(const json_t *object, const char *name, enum wlbd_need need, size_t max, const json_t **value,
                     struct wlb_error *error);
/* A value of any type, or none: at most `max_bytes` of compact JSON, and every number within +-1e18, which every
 * reader of JSON accepts. */
int wlbd_field_bounded(const json_t *object, const char *name, size_t max_bytes, struct wlb_error *error);
/* An array of non-empty names. */
int wlbd_field_names(const json_t *object, const char *name, enum wlbd_need need, size_t max, const json_t **value,
                     struct wlb_error *error);
/* A UUID in its canonical form, lower or upper case. */
int wlbd_field_uuid(const json_t *object, const char *name, const char **value, struct wlb_error *error);
/* One of the NULL-terminated `choices`. */
int wlbd_field_choice(const json_t *object, const char *name, enum wlbd_need need, const char *const *choices,
                      const char **value, struct wlb_error *error);

#endif
