/* The fields "first_exit", "launch_failure" and "srun_signal" of a body. */
#ifndef COORDINATOR_WLBD_REQUESTS_FIRST_EXIT_H
#define COORDINATOR_WLBD_REQUESTS_FIRST_EXIT_H

#include <jansson.h>

#include "coordinator/wlbd/rules/incident.h"
#include "libwlb/wlb.h"

/* Reads object.first_exit, object.launch_failure and object.srun_signal; all may be absent. */
int wlbd_first_exit_read(const json_t *object, struct wlbd_first_exit *first, struct wlb_error *error);

#endif
