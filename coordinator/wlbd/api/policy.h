/* The options of a run that its user chose (common/job_options.h), which are in POST /v1/runs and POST
 * /v1/runs/RUN/attempts. */
#ifndef COORDINATOR_WLBD_API_POLICY_H
#define COORDINATOR_WLBD_API_POLICY_H

#include <jansson.h>

#include "libwlb/wlb.h"

/* Returns -1 with the option that is wrong. */
int wlbd_policy_check(const json_t *policy, struct wlb_error *error);

/* Returns the options of common/job_options.h in their canonical form as JSON text, which the caller frees; other
 * fields are omitted. The schema merges the items of `on_fault` by their keys. `policy` NULL is an empty one. Returns
 * NULL if out of memory. */
char *wlbd_policy_text(const json_t *policy);

#endif
