/*
 * A request under way: from its first line until its reply was sent, which may be much later than the handler's
 * return. Exactly one of the wlbd_call_reply functions answers it; after that the call is no longer the handler's.
 */
#ifndef COORDINATOR_WLBD_HTTP_CALL_H
#define COORDINATOR_WLBD_HTTP_CALL_H

#include <event2/keyvalq_struct.h>
#include <jansson.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "common/digest.h"
#include "coordinator/wlbd/database/db.h"
#include "coordinator/wlbd/http/connection.h"
#include "coordinator/wlbd/http/route.h"
#include "coordinator/wlbd/thread_pool.h"
#include "libwlb/wlb.h"

struct evbuffer;
struct wlbd;
struct wlbd_exchange; /* the request as the HTTP library has it: request.c's own */

/* What is sent when the call is over. */
struct wlbd_answer {
	int status;
	const char *type; /* Content-Type; static */
	char *body;
	size_t length;
	char *proof; /* value of the header WLB-Proof; NULL: none */
};

struct wlbd_call {
	struct wlbd_task task; /* first: munged is asked, and a long body parsed, on threads, one after the other */
	struct wlbd *wlbd;
	struct wlbd_exchange *exchange;
	struct wlbd_connection *connection;
	const struct wlbd_route *route; /* NULL: none matches */
	const char *method;
	char *uri;                            /* path with query, as it was asked for */
	char run[WLBD_RUN_NAME_SIZE];         /* the RUN of the path; "" where it has none */
	struct evkeyvalq query;               /* after the '?' */
	uid_t uid;                            /* who asks, by the credential */
	char *credential;                     /* of the request; NULL until it is proved */
	char claim[WLB_DIGEST_SIZE];          /* the digest that the credential vouches for */
	void (*then)(struct wlbd_call *call); /* after the task */
	struct wlb_error refusal;             /* of the task; "" */
	int refusal_status;                   /* 0: none */
	json_t *body;                         /* of a POST; an object */
	char *text;                           /* the same as it came, with a NUL after it */
	size_t text_length;                   /* that has come */
	size_t values;                        /* it has at most */
	size_t held_bytes;                    /* of the user's budget */
	bool outdated;                        /* asked by a wlb that does not know proofs */
	bool plain; /* set by the handler: nothing depends on the reply, so it goes without proof */
	int64_t began_ms;
	struct wlbd_answer answer;
};

/* NULL when memory is out. */
struct wlbd_call *wlbd_call_new(struct wlbd *wlbd, const char *uri);
void wlbd_call_free(struct wlbd_call *call);

void wlbd_call_reply_buffer(struct wlbd_call *call, const char *type, struct evbuffer *out); /* 200; frees out */
void wlbd_call_reply_text(struct wlbd_call *call, int status, const char *json);
void wlbd_call_reply(struct wlbd_call *call, int status, json_t *json); /* steals the reference */
void wlbd_call_fail(struct wlbd_call *call, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* When the database did not do it: its status and message. */
void wlbd_call_fail_db(struct wlbd_call *call, const struct wlbd_db_result *result);

/* root and SlurmUser may act on every run. */
bool wlbd_call_privileged(const struct wlbd_call *call);

/* A query parameter, NULL when absent or empty. */
const char *wlbd_call_parameter(const struct wlbd_call *call, const char *name);

#endif
