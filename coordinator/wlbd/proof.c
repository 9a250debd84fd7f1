#include "coordinator/wlbd/proof.h"

#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>

#include "coordinator/client/credential.h"
#include "coordinator/client/digest.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/wlbd.h"
#include "coordinator/wlbd/worker.h"

struct proof {
	struct wlbd_job job;
	struct wlbd_call *call;
	struct wlbd_answer answer;
	void (*then)(struct wlbd_call *call, struct wlbd_answer *answer);
	struct wlb_error error;
};

static void run_proof(struct wlbd_job *job)
{
	struct proof *proof = (struct proof *)job;
	const struct wlbd_call *call = proof->call;
	struct evbuffer *body = proof->answer.body;
	char digest[WLB_DIGEST_SIZE];
	wlb_digest_reply(call->credential, proof->answer.status, call->route->method, call->uri,
	                 evbuffer_pullup(body, -1), evbuffer_get_length(body), digest);
	char *credential = wlb_credential_make_for(call->wlbd->config.munge_socket, call->uid, digest,
	                                           WLB_DIGEST_SIZE - 1, &proof->error);
	if (credential != NULL && asprintf(&proof->answer.proof, "MUNGE %s", credential) < 0)
		proof->answer.proof = NULL;
	free(credential);
}

static void finish_proof(struct wlbd_job *job)
{
	struct proof *proof = (struct proof *)job;
	if (proof->answer.proof == NULL) /* the asker takes the reply for none, and asks again */
		wlbd_log(WLBD_LOG_WARNING, "a reply is not proved: %s", proof->error.message);
	proof->then(proof->call, &proof->answer);
	free(proof);
}

static void discard_proof(struct wlbd_job *job)
{
	wlb_fail(&((struct proof *)job)->error, "too many wait for theirs, or wlbd is stopping");
	finish_proof(job);
}

void wlbd_proof_make(struct wlbd_call *call, const struct wlbd_answer *answer,
                     void (*then)(struct wlbd_call *call, struct wlbd_answer *answer))
{
	struct proof *proof = call->wlbd->stopping ? NULL : calloc(1, sizeof(*proof));
	struct wlbd_answer unproved = *answer;
	if (proof == NULL) {
		then(call, &unproved);
		return;
	}
	*proof = (struct proof){.job = {.run = run_proof, .done = finish_proof, .discard = discard_proof},
	                        .call = call,
	                        .answer = *answer,
	                        .then = then};
	wlbd_worker_submit(call->wlbd->auth, &proof->job);
}
