/* Checks the options of a run that its user chose, which are in POST /v1/runs and POST /v1/runs/RUN/attempts. */
#ifndef COORDINATOR_WLBD_REQUESTS_POLICY_H
#define COORDINATOR_WLBD_REQUESTS_POLICY_H

#include <jansson.h>

#include "libwlb/wlb.h"

/* Returns -1 with the option that is wrong. */
int wlbd_policy_check(const json_t *policy, struct wlb_error *error);

/* Returns the known options as JSON text, which the caller frees; other fields are left out, and `on_fault` is written
 * as items KEY=VALUE, as the schema merges them. `policy` NULL is an empty one. Returns NULL if out of memory. */
char *wlbd_policy_text(const json_t *policy);

#endif
