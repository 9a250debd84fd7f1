/*
 * The reply to a request. Exactly one of these functions is called for each request; afterwards the request is no
 * longer the handler's. The reply carries a proof that wlbd made it (docs/api.md): a credential made by munged, on a
 * thread, so that the event loop does not wait.
 */
#ifndef COORDINATOR_WLBD_HTTP_REPLY_H
#define COORDINATOR_WLBD_HTTP_REPLY_H

#include <jansson.h>

#include "coordinator/wlbd/database/db.h"
#include "coordinator/wlbd/http/request.h"

struct evbuffer;

void wlbd_request_reply_buffer(struct wlbd_request *request, const char *type,
                               struct evbuffer *out); /* 200; frees `out` */
void wlbd_request_reply_text(struct wlbd_request *request, int status, const char *json);
void wlbd_request_reply(struct wlbd_request *request, int status, json_t *json); /* takes the reference */

void wlbd_request_fail(struct wlbd_request *request, int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* 503: wlbd has no memory for the request. */
void wlbd_request_fail_memory(struct wlbd_request *request);
/* 503: this wlbd stands by; the body begins as clients expect it (coordinator/client/client.c). */
void wlbd_request_fail_standby(struct wlbd_request *request);
/* 503: wlbd ends. */
void wlbd_request_fail_stopping(struct wlbd_request *request);
/* The statement failed: replies with its status and message. */
void wlbd_request_fail_db(struct wlbd_request *request, const struct wlbd_db_result *result);

#endif
