/*
 * A request under way: from the moment it is read until its reply, which may be much later than the handler's
 * return. Exactly one of the wlbd_call_reply functions ends it and frees it.
 */
#ifndef WLBD_CALL_H
#define WLBD_CALL_H

#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

#include "coordinator/wlbd/db.h"
#include "coordinator/wlbd/route.h"
#include "libwlb/wlb.h"

struct wlbd;

struct wlbd_call {
	struct wlbd *wlbd;
	struct evhttp_request *request;
	const struct wlbd_route *route;
	char run[WLBD_RUN_NAME_SIZE]; /* the RUN of the path; "" where it has none */
	struct evkeyvalq query;       /* after the '?' */
	const char *uri;              /* path with query, as it was asked for */
	char *credential;             /* of the request; NULL until it is proved */
	uid_t uid;                    /* who asks, by the credential */
	bool outdated;                /* asked by a wlb that does not know proofs */
	bool plain;                   /* set by the handler: nothing depends on the reply, so it goes without proof */
	json_t *body;                 /* of a POST; an object */
	char *text;                   /* the same as it came, with a NUL after it */
	size_t text_length;
	int64_t began_ms;
};

/* Takes the body out of the request. NULL when memory is out. */
struct wlbd_call *wlbd_call_new(struct wlbd *wlbd, struct evhttp_request *request);

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
