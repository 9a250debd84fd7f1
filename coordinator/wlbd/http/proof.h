/*
 * Proves to the asker that it was wlbd who answered (docs/api.md): made on the threads that ask munged, so that the
 * event loop does not wait.
 */
#ifndef COORDINATOR_WLBD_HTTP_PROOF_H
#define COORDINATOR_WLBD_HTTP_PROOF_H

struct wlbd_call;

/* Sets call->answer.proof, or leaves it NULL where munged makes none, and goes on with `then`. */
void wlbd_proof_make(struct wlbd_call *call, void (*then)(struct wlbd_call *call));

#endif
