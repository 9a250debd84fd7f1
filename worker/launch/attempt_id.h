/* The name of the attempt that is recorded. */
#ifndef WORKER_LAUNCH_ATTEMPT_ID_H
#define WORKER_LAUNCH_ATTEMPT_ID_H

#include <stddef.h>

#include "libwlb/wlb.h"

/* The name of this attempt: WLB_ATTEMPT_ID, or a fresh UUID where a plain srun started us in a job of WLB, or
 * "" where nothing is recorded. */
int wlb_launch_attempt_id(char *id, size_t size, struct wlb_error *error);

#endif
