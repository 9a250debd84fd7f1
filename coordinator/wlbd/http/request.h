/*
 * A request under way: from its first line until its reply was sent, which may be much later than the handler's
 * return. The handler answers it with one of the functions of reply.h.
 */
#ifndef COORDINATOR_WLBD_HTTP_REQUEST_H
#define COORDINATOR_WLBD_HTTP_REQUEST_H

#include <event2/keyvalq_struct.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "common/digest.h"
#include "coordinator/wlbd/http/body_memory.h"
#include "coordinator/wlbd/http/connection.h"
#include "coordinator/wlbd/http/route.h"
#include "coordinator/wlbd/thread_pool.h"
#include "libwlb/wlb.h"

struct wlbd;
struct wlbd_exchange;

struct wlbd_answer {
	int status;
	const char *type; /* Content-Type; static */
	char *body;
	size_t length;
	char *proof; /* value of the header WLB-Proof; NULL: none */
};

struct wlbd_request {
	struct wlbd_task task; /* first; one at a time: checks the credential, reads a long body, makes the proof */
	struct wlbd *wlbd;
	struct wlbd_exchange *exchange;
	struct wlbd_connection *connection;
	const struct wlbd_route *route; /* NULL: none matches */
	const char *method;
	char *uri;                      /* path with query, as the client sent it */
	char run[WLBD_RUN_NAME_SIZE];   /* the RUN of the path; "" where it has none */
	struct evkeyvalq query;         /* after the '?' */
	bool takes_openmetrics;         /* by its header Accept */
	uid_t uid;                      /* of the client, by its credential */
	char *credential;               /* of the request; NULL until it is accepted */
	char claim[WLB_DIGEST_SIZE];    /* the digest that the credential holds */
	struct wlb_error refusal;       /* of the task; "" */
	int refusal_status;             /* HTTP's; 0: none */
	json_t *body;                   /* of a POST; an object */
	struct wlbd_body_memory memory; /* of the body, where its route only reads it */
	char *text;                     /* the same as it was sent, with a NUL after it */
	size_t text_length;             /* that has arrived */
	size_t values;                  /* an upper bound of those in the body */
	size_t in_flight_bytes;         /* of the user's budget */
	size_t reply_bytes;             /* of the user's budget of replies */
	bool has_question;              /* counted in the user's budget of questions */
	void *parsed;  /* the handler's, freed with the request: what it has read of the body; NULL: none */
	bool is_plain; /* set by the handler: nothing depends on the reply, so it carries no proof */
	int64_t began_ms;
	struct wlbd_answer answer;
};

/* Returns NULL if out of memory. */
struct wlbd_request *wlbd_request_new(struct wlbd *wlbd, const char *uri);
void wlbd_request_free(struct wlbd_request *request);

/* root and SlurmUser may act on every run. */
bool wlbd_request_privileged(const struct wlbd_request *request);

/* Returns a query parameter; NULL where it is absent or empty. */
const char *wlbd_request_parameter(const struct wlbd_request *request, const char *name);

#endif
