/*
 * The body of a request. To hash and parse a long one takes as long as hundreds of short requests: that is done on a
 * thread of its own, and for a short one at once.
 */
#ifndef COORDINATOR_WLBD_HTTP_BODY_H
#define COORDINATOR_WLBD_HTTP_BODY_H

#include <stddef.h>

struct wlbd_call;

/* Compares call->text with the digest in the credential, parses it into call->body where it is a POST, and calls the
 * handler of call->route; or answers 400, 401, 413 or 503. The parsed values are counted against the user's budget. */
void wlbd_body_handle(struct wlbd_call *call);

/* Counts bytes against the budget of the call's user, but not up to 16 KiB: a client who announces a short body, or
 * sends one, is served whatever others hold. Such texts and their values take 296 MiB at most, 2 x 16 KiB on each of
 * 9,472 connections. Returns -1 where the user, or all users together, hold too much; the call is answered with 503
 * then. */
int wlbd_body_hold(struct wlbd_call *call, size_t bytes);

#endif
