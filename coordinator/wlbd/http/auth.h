/* Which user sent a request: its MUNGE credential, checked on a thread since libmunge blocks. */
#ifndef COORDINATOR_WLBD_HTTP_AUTH_H
#define COORDINATOR_WLBD_HTTP_AUTH_H

struct wlbd_request;

/*
 * `header` is the value of Authorization; NULL: there is none. Sets request->uid, request->credential and
 * request->claim, allocates the buffer of the body, and lets the library read the body; or answers 401, 404, 405 or
 * 413, or 503 where munged does not answer or a budget is used up. Only the head of the request is needed: the claim is
 * compared with the body later.
 */
void wlbd_auth_check(struct wlbd_request *request, const char *header);

#endif
