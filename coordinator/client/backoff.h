/* When to ask a coordinator again that did not answer. */
#ifndef COORDINATOR_CLIENT_BACKOFF_H
#define COORDINATOR_CLIENT_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

struct wlb_backoff {
	int64_t until_ms; /* of wlb_clock_ms(); 0: at once */
	int failures;
};

/* After a try: a success clears it; each failure in a row waits longer, 5 s at most, by a random part less. */
void wlb_backoff_note(struct wlb_backoff *backoff, bool failed);

/* A random number from 0 to `most`, both included, that takes nothing from the program's own sequence. */
int64_t wlb_random_upto(int64_t most);

#endif
