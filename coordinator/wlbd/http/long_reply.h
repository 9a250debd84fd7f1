/*
 * Replies that may be long. Until the client has read a long reply, the reply counts against limits of its user.
 * Requests have limits of their own, so that replies that nobody reads keep no request from being accepted.
 */
#ifndef COORDINATOR_WLBD_HTTP_LONG_REPLY_H
#define COORDINATOR_WLBD_HTTP_LONG_REPLY_H

#include "coordinator/wlbd/database/db.h"
#include "coordinator/wlbd/http/request.h"

/* Replies with 200, or with 503 where the user, or all users together, have not read too many bytes. */
void wlbd_request_reply_long(struct wlbd_request *request, const char *json);

/* For wlbd_db_execute, whose context is the request: replies with the JSON that the statement has returned, or as
 * wlbd_request_fail_db. */
void wlbd_request_reply_db(void *request, const struct wlbd_db_result *result);

#endif
