/* Which user sent a request: its MUNGE credential, checked on a thread since libmunge blocks. */
#ifndef COORDINATOR_WLBD_HTTP_AUTH_H
#define COORDINATOR_WLBD_HTTP_AUTH_H

struct wlbd_call;

/*
 * `header` is the value of Authorization; NULL: there is none. Sets call->uid, call->credential and call->claim and
 * calls wlbd_admit; or answers 401, or 503 where munged does not answer. Only the head of the request is needed: the
 * claim is compared with the body later.
 */
void wlbd_auth_check(struct wlbd_call *call, const char *header);

#endif
