/* What ended a step, by the word of its launcher: "first_exit" of a body, the task that srun saw die first, killed by a
 * signal, or "srun_signal", which killed srun itself. */
#ifndef COORDINATOR_WLBD_REQUESTS_FIRST_EXIT_H
#define COORDINATOR_WLBD_REQUESTS_FIRST_EXIT_H

#include <jansson.h>
#include <stdint.h>

#include "libwlb/wlb.h"

struct wlbd_first_exit {
	const char *node; /* points into the body; NULL: there is no first exit */
	int64_t rank;
	int64_t signal;
	int64_t srun_signal; /* 0: none killed it */
};

/* Reads object.first_exit and object.srun_signal, which may be absent. */
int wlbd_first_exit_read(const json_t *object, struct wlbd_first_exit *first, struct wlb_error *error);

#endif
