/* The id of the recorded attempt. */
#ifndef WORKER_LAUNCH_ATTEMPT_ID_H
#define WORKER_LAUNCH_ATTEMPT_ID_H

#include <stddef.h>

#include "libwlb/wlb.h"

/* Writes the id of this attempt: WLB_ATTEMPT_ID, or a new UUID where a plain srun in a job of WLB started this process,
 * or "" where nothing is recorded. */
int wlb_launch_attempt_id(char *id, size_t size, struct wlb_error *error);

#endif
