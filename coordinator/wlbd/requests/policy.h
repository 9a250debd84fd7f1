/* What a user asked for of a run: the same options in POST /v1/runs and POST /v1/runs/RUN/attempts. */
#ifndef COORDINATOR_WLBD_REQUESTS_POLICY_H
#define COORDINATOR_WLBD_REQUESTS_POLICY_H

#include <jansson.h>

#include "libwlb/wlb.h"

/* -1 with the option that is wrong. */
int wlbd_policy_check(const json_t *policy, struct wlb_error *error);

/* The options that are known, as JSON; what else a client sent is not stored. NULL is an empty policy. NULL without
 * memory; the caller frees. */
char *wlbd_policy_text(const json_t *policy);

#endif
