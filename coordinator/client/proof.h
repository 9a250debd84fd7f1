/*
 * The proof that a reply is the coordinator's. wlbd adds to its replies the header WLB-Proof: a MUNGE credential of
 * its own account over the request's credential, which is used once, and over the reply. A proof is therefore valid
 * for one reply to one request, and another program that listens on wlbd's port cannot make one.
 */
#ifndef COORDINATOR_CLIENT_PROOF_H
#define COORDINATOR_CLIENT_PROOF_H

#include <stdbool.h>

#include "coordinator/client/config.h"
#include "coordinator/client/http.h"
#include "coordinator/client/reply.h"

struct wlb_proof_request {
	const char *method;
	const char *path; /* with query */
	const char *credential;
};

/* Sets reply->proved. Returns -1 if the reply decides something and is not proved; the message says why. */
int wlb_proof_check(const struct wlb_client_config *config, const struct wlb_proof_request *request,
                    const struct wlb_http_head *head, struct wlb_reply *reply, struct wlb_error *error);

#endif
