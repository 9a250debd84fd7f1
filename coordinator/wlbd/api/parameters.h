/* Parameters of GET requests. */
#ifndef COORDINATOR_WLBD_API_PARAMETERS_H
#define COORDINATOR_WLBD_API_PARAMETERS_H

#include <stdint.h>

#include "coordinator/wlbd/database/params.h"
#include "coordinator/wlbd/http/request.h"

/* Adds the uid that a row must have so that the caller may read it, or null: any. */
void wlbd_parameter_add_reader(struct wlbd_params *params, const struct wlbd_request *request);

/* Reads a whole number from `min` to `max`; *number is unchanged where the request has no such parameter. Answers
 * 400 and returns -1 where it is none. */
int wlbd_parameter_number(struct wlbd_request *request, const char *name, int64_t min, int64_t max, int64_t *number);

#endif
