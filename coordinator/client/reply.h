/* A reply of wlbd, and the error text of one that reports a failure. */
#ifndef COORDINATOR_CLIENT_REPLY_H
#define COORDINATOR_CLIENT_REPLY_H

#include <stdbool.h>
#include <stddef.h>

#include "libwlb/wlb.h"

struct wlb_reply {
	int status;  /* HTTP status */
	bool proved; /* it is wlbd's reply to this request */
	char *body;  /* NUL-terminated, the caller frees; never NULL after success */
	size_t length;
};

/* Sets the message to the `error` text of the reply's body, or to its status if there is none. Returns whether there
 * was such a text. */
bool wlb_reply_failure(const struct wlb_reply *reply, struct wlb_error *error);

#endif
