/* The fields "first_exit", "launch_failure", "slurm_end" and "srun_signal" of a body. */
#ifndef COORDINATOR_WLBD_API_FIRST_EXIT_H
#define COORDINATOR_WLBD_API_FIRST_EXIT_H

#include <jansson.h>

#include "coordinator/wlbd/rules/incident.h"
#include "libwlb/wlb.h"

/* Reads these fields of the object; all may be absent. */
int wlbd_first_exit_read(const json_t *object, struct wlbd_first_exit *first, struct wlb_error *error);

/* Reads object.slurm_end alone, which may be absent. */
int wlbd_slurm_end_read(const json_t *object, struct wlbd_reported_reason *end, struct wlb_error *error);

#endif
