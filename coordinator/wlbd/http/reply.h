/*
 * The reply to a call. Exactly one of these functions is called for each call; afterwards the call is no longer the
 * handler's. The reply carries a proof that wlbd made it (docs/api.md): a credential made by munged, on a thread, so
 * that the event loop does not wait.
 */
#ifndef COORDINATOR_WLBD_HTTP_REPLY_H
#define COORDINATOR_WLBD_HTTP_REPLY_H

#include <jansson.h>

#include "coordinator/wlbd/database/db.h"
#include "coordinator/wlbd/http/call.h"

struct evbuffer;

void wlbd_call_reply_buffer(struct wlbd_call *call, const char *type, struct evbuffer *out); /* 200; frees `out` */
void wlbd_call_reply_text(struct wlbd_call *call, int status, const char *json);
void wlbd_call_reply(struct wlbd_call *call, int status, json_t *json); /* takes the reference */

void wlbd_call_fail(struct wlbd_call *call, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* 503: wlbd has no memory for the request. */
void wlbd_call_fail_memory(struct wlbd_call *call);
/* 503: wlbd ends. */
void wlbd_call_fail_stopping(struct wlbd_call *call);
/* The statement failed: replies with its status and message. */
void wlbd_call_fail_db(struct wlbd_call *call, const struct wlbd_db_result *result);

#endif
