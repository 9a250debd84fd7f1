/* Checks the data of a record of type "plan" (docs/api.md); no I/O. */
#ifndef COORDINATOR_WLBD_REQUESTS_PLAN_CHECK_H
#define COORDINATOR_WLBD_REQUESTS_PLAN_CHECK_H

#include <jansson.h>

#include "libwlb/wlb.h"

/* Returns -1 with the field that is wrong. Every number must be within its bounds, and every list and text not too
 * long. */
int wlbd_plan_check(const json_t *data, struct wlb_error *error);

#endif
