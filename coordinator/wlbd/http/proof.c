#include "coordinator/wlbd/http/proof.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/digest.h"
#include "coordinator/client/credential.h"
#include "coordinator/wlbd/http/call.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/wlbd.h"

static void run_proof(struct wlbd_task *task)
{
	struct wlbd_call *call = (struct wlbd_call *)task;
	struct wlbd_answer *answer = &call->answer;
	char digest[WLB_DIGEST_SIZE];
	wlb_digest_reply(call->credential, answer->status, call->method, call->uri, answer->body, answer->length,
	                 digest);
	char *credential = wlb_credential_make_for(call->wlbd->config.munge_socket, call->uid, digest,
	                                           WLB_DIGEST_SIZE - 1, &call->refusal);
	if (credential != NULL && asprintf(&answer->proof, "MUNGE %s", credential) < 0)
		answer->proof = NULL;
	free(credential);
}

static void finish_proof(struct wlbd_task *task)
{
	struct wlbd_call *call = (struct wlbd_call *)task;
	if (call->answer.proof == NULL) /* the asker takes the reply for none, and asks again */
		wlbd_log_limited(WLBD_LOG_WARNING, WLBD_LIMIT_MUNGE, "a reply is not proved: %s",
		                 call->refusal.message);
	call->then(call);
}

static void discard_proof(struct wlbd_task *task)
{
	wlb_fail(&((struct wlbd_call *)task)->refusal, "too many wait for munged, or wlbd is stopping");
	finish_proof(task);
}

void wlbd_proof_make(struct wlbd_call *call, void (*then)(struct wlbd_call *call))
{
	call->then = then;
	call->task = (struct wlbd_task){.run = run_proof, .done = finish_proof, .discard = discard_proof};
	wlbd_thread_pool_submit(call->wlbd->auth, &call->task);
}
