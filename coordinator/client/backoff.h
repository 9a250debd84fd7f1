/* When to send the next request to a coordinator that did not answer. */
#ifndef COORDINATOR_CLIENT_BACKOFF_H
#define COORDINATOR_CLIENT_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

struct wlb_backoff {
	int64_t until_ms; /* of wlb_clock_ms(); 0: at once */
	int failures;
};

/* Notes the result of a request. A success clears the pause; each failure in a row lengthens it, to 5 s at most, less a
 * random part. */
void wlb_backoff_note(struct wlb_backoff *backoff, bool failed);

/* A random number from 0 to `max`, both included; does not use the program's own random sequence. */
int64_t wlb_random_upto(int64_t max);

#endif
