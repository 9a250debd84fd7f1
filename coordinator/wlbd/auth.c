#include "coordinator/wlbd/auth.h"

#include <munge.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/client/digest.h"
#include "coordinator/wlbd/call.h"
#include "coordinator/wlbd/wlbd.h"
#include "coordinator/wlbd/worker.h"

struct check {
	struct wlbd_job job;
	struct wlbd_call *call;
	void (*then)(struct wlbd_call *call);
	char *credential;
	char digest[WLB_DIGEST_SIZE]; /* what it must vouch for */
	uid_t uid;
	int status; /* 200, or what to answer */
	char message[256];
};

static void refuse(struct check *check, int status, const char *why, const char *remedy)
{
	check->status = status;
	snprintf(check->message, sizeof(check->message), "credential: %s; %s", why, remedy);
}

static void refuse_munge(struct check *check, munge_err_t rc, munge_ctx_t context)
{
	const char *why = munge_ctx_strerror(context);
	if (why == NULL)
		why = munge_strerror(rc);
	switch (rc) {
	case EMUNGE_SOCKET:
	case EMUNGE_TIMEOUT:
		refuse(check, 503, why, "munged must run where wlbd runs");
		break;
	case EMUNGE_CRED_REPLAYED:
		refuse(check, 401, "it was used before", "make a new one for each request");
		break;
	case EMUNGE_CRED_EXPIRED:
	case EMUNGE_CRED_REWOUND:
		refuse(check, 401, why, "make it when it is needed, on a host whose clock is right");
		break;
	default:
		refuse(check, 401, why, "send the header Authorization: MUNGE and a credential made by munge");
	}
}

static void run_check(struct wlbd_job *job)
{
	struct check *check = (struct check *)job;
	const char *socket = check->call->wlbd->config.munge_socket;
	munge_ctx_t context = munge_ctx_create();
	void *payload = NULL;
	int length = 0;
	gid_t gid;

	if (context == NULL) {
		refuse(check, 503, "out of memory", "try again");
		return;
	}
	if (*socket != '\0')
		munge_ctx_set(context, MUNGE_OPT_SOCKET, socket);
	munge_err_t rc = munge_decode(check->credential, context, &payload, &length, &check->uid, &gid);
	if (rc != EMUNGE_SUCCESS)
		refuse_munge(check, rc, context);
	else if (length != WLB_DIGEST_SIZE - 1 || memcmp(payload, check->digest, (size_t)length) != 0)
		refuse(check, 401, "it is for another request",
		       "its payload is the SHA-256 of METHOD, path with query, and body");
	free(payload);
	munge_ctx_destroy(context);
}

static void finish_check(struct wlbd_job *job)
{
	struct check *check = (struct check *)job;
	if (check->call->wlbd->stopping)
		refuse(check, 503, "wlbd is stopping", "try again");
	if (check->status == 200) {
		check->call->uid = check->uid;
		check->call->credential = check->credential;
		check->credential = NULL;
		check->then(check->call);
	} else {
		wlbd_call_fail(check->call, check->status, "%s", check->message);
	}
	free(check->credential);
	free(check);
}

static void discard_check(struct wlbd_job *job)
{
	refuse((struct check *)job, 503, "too many wait to be looked at", "try again");
	finish_check(job);
}

void wlbd_auth_check(struct wlbd_call *call, void (*then)(struct wlbd_call *call))
{
	const char *header = evhttp_find_header(evhttp_request_get_input_headers(call->request), "Authorization");
	if (header == NULL || strncasecmp(header, "MUNGE ", 6) != 0) {
		wlbd_call_fail(call, 401,
		               "credential: there is none; send the header Authorization: MUNGE and a "
		               "credential made by munge");
		return;
	}
	struct check *check = calloc(1, sizeof(*check));
	if (check == NULL || (check->credential = strdup(header + 6)) == NULL) {
		free(check);
		wlbd_call_fail(call, 503, "out of memory; try again");
		return;
	}
	check->job = (struct wlbd_job){.run = run_check, .done = finish_check, .discard = discard_check};
	check->call = call;
	check->then = then;
	check->status = 200;
	wlb_digest_request(call->route->method, call->uri, call->text, call->text_length, check->digest);
	wlbd_worker_submit(call->wlbd->auth, &check->job);
}
