/*
 * The body of a request. To hash and parse a long one takes as long as hundreds of short requests: that is done on a
 * thread of its own, and for a short one at once.
 */
#ifndef COORDINATOR_WLBD_HTTP_BODY_H
#define COORDINATOR_WLBD_HTTP_BODY_H

#include <stddef.h>

struct wlbd_request;

/* Compares request->text with the digest in the credential, parses it into request->body where it is a POST, and calls
 * the handler of request->route; or answers 400, 401, 413 or 503. The parsed values are counted against the user's
 * budget. */
void wlbd_body_handle(struct wlbd_request *request);

/* Counts bytes against the budget of the request's user, but not up to 16 KiB: a client who announces a short body, or
 * sends one, is served whatever others hold. Such texts and their values take 296 MiB at most, 2 x 16 KiB on each of
 * 9,472 connections. Returns -1 where the user, or all users together, hold too much; the request is answered with 503
 * then. */
int wlbd_body_hold(struct wlbd_request *request, size_t bytes);

#endif
