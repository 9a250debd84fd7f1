/* A reply of wlbd, and what one that is not a success says. */
#ifndef COORDINATOR_CLIENT_REPLY_H
#define COORDINATOR_CLIENT_REPLY_H

#include <stdbool.h>
#include <stddef.h>

#include "libwlb/wlb.h"

struct wlb_reply {
	int status;  /* HTTP status */
	bool proved; /* it is wlbd's, and the answer to this request */
	char *body;  /* NUL-terminated, the caller frees; never NULL after success */
	size_t length;
};

/* The `error` text of the reply's body, or its status where it has none; whether there was such a text. */
bool wlb_reply_failure(const struct wlb_reply *reply, struct wlb_error *error);

#endif
