/* The field "step_id" of a body: the id of a step of the run's job, such as "12.0". */
#ifndef COORDINATOR_WLBD_API_STEP_ID_H
#define COORDINATOR_WLBD_API_STEP_ID_H

#include "libwlb/wlb.h"

/* Returns -1 where `step_id` is no step of the job of the run. */
int wlbd_step_id_check(const char *run, const char *step_id, struct wlb_error *error);

#endif
