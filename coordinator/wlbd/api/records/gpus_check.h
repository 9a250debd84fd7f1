/* Checks a record of type "gpus" (docs/api.md). */
#ifndef COORDINATOR_WLBD_API_RECORDS_GPUS_CHECK_H
#define COORDINATOR_WLBD_API_RECORDS_GPUS_CHECK_H

#include <jansson.h>

#include "libwlb/wlb.h"

/* Returns -1 with a message that names the field, its value and the rule. */
int wlbd_gpus_check(const json_t *data, struct wlb_error *error);

#endif
