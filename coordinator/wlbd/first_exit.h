/* "first_exit" of a body: the task that srun saw die first, killed by a signal. */
#ifndef WLBD_FIRST_EXIT_H
#define WLBD_FIRST_EXIT_H

#include <jansson.h>
#include <stdint.h>

#include "libwlb/wlb.h"

struct wlbd_first_exit {
	const char *node; /* points into the body; NULL: there is no first exit */
	int64_t rank;
};

/* Reads object.first_exit, which may be absent. */
int wlbd_first_exit_read(const json_t *object, struct wlbd_first_exit *first, struct wlb_error *error);

#endif
