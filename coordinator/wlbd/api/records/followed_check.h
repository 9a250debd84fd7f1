/* Checks the data of a record of type followed: what a trainer said of a step, and where it said it. */
#ifndef COORDINATOR_WLBD_API_RECORDS_FOLLOWED_CHECK_H
#define COORDINATOR_WLBD_API_RECORDS_FOLLOWED_CHECK_H

#include <jansson.h>

#include "libwlb/wlb.h"

enum { WLBD_FOLLOWED_VALUES_MAX = 64, WLBD_FOLLOWED_NAME_BYTES_MAX = 63 };

/* Returns -1 with the field that is wrong. */
int wlbd_followed_check(const json_t *data, struct wlb_error *error);

#endif
