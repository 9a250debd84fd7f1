/*
 * Proves to the asker that it was wlbd who answered (docs/api.md): made on the threads that ask munged, so that the
 * event loop does not wait.
 */
#ifndef WLBD_PROOF_H
#define WLBD_PROOF_H

#include "coordinator/wlbd/call.h"

/* A reply that is ready, and the value of its header WLB-Proof; NULL where munged made none. */
struct wlbd_answer {
	int status;
	const char *type; /* Content-Type; static */
	struct evbuffer *body;
	char *proof;
};

/* Goes on with `then`, which frees the proof. */
void wlbd_proof_make(struct wlbd_call *call, const struct wlbd_answer *answer,
                     void (*then)(struct wlbd_call *call, struct wlbd_answer *answer));

#endif
