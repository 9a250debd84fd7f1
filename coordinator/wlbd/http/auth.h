/* Who asks: the MUNGE credential of a request, checked on a thread since libmunge blocks. */
#ifndef COORDINATOR_WLBD_HTTP_AUTH_H
#define COORDINATOR_WLBD_HTTP_AUTH_H

struct wlbd_call;

/*
 * `header` is that of Authorization; NULL: none. Sets call->uid, call->credential and call->claim and goes on with
 * `then`; or answers 401, or 503 where munged is away. Nothing of the request but its head is needed: what the claim
 * is compared with comes later.
 */
void wlbd_auth_check(struct wlbd_call *call, const char *header, void (*then)(struct wlbd_call *call));

#endif
