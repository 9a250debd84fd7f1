/* Checks the data of a record of type "plan" (docs/api.md); no I/O. */
#ifndef COORDINATOR_WLBD_API_RECORDS_PLAN_CHECK_H
#define COORDINATOR_WLBD_API_RECORDS_PLAN_CHECK_H

#include <jansson.h>

#include "libwlb/wlb.h"

/* Returns -1 with the field that is wrong. Every number must be within its bounds, and every list and text not too
 * long. Whether the ranks are placed consistently is not checked: a plan is shown to who may see the run, and nothing
 * acts on it but the attempt's layout, which rank 0 may record as freely. */
int wlbd_plan_check(const json_t *data, struct wlb_error *error);

#endif
