/* What a reply that is not a success says. */
#ifndef COORDINATOR_CLIENT_REPLY_H
#define COORDINATOR_CLIENT_REPLY_H

#include <stdbool.h>

#include "coordinator/client/client.h"

/* The `error` text of the reply's body, or its status where it has none; whether there was such a text. */
bool wlb_reply_failure(const struct wlb_reply *reply, struct wlb_error *error);

#endif
