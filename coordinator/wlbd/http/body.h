/*
 * The body of a request, once it is whole. Hashing and parsing a long one takes as long as hundreds of short requests:
 * it is done on a thread of its own, a short one at once.
 */
#ifndef COORDINATOR_WLBD_HTTP_BODY_H
#define COORDINATOR_WLBD_HTTP_BODY_H

#include <stddef.h>

struct wlbd_call;

/* The most that the values of a body, once parsed, can be: every value but the first follows one of , : [ {. */
size_t wlbd_body_values(const char *text, size_t length);

/* Compares call->text with what the credential claims, parses it into call->body where it is a POST, and goes on with
 * `then`; or answers 400, 401, 413 or 503. What it holds is taken from the user's budget. */
void wlbd_body_take(struct wlbd_call *call, void (*then)(struct wlbd_call *call));

/* Answers 503 when the user, or all users, hold too much; -1 then. */
int wlbd_body_hold(struct wlbd_call *call, size_t bytes);

#endif
