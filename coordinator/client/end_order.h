/* The order in the coordinator's reply to a report. */
#ifndef COORDINATOR_CLIENT_END_ORDER_H
#define COORDINATOR_CLIENT_END_ORDER_H

#include <stdbool.h>
#include <stddef.h>

#include "coordinator/client/reply.h"

/* Whether the reply orders the attempt to end. If so, `reason` receives its reason, cut to `size`. */
bool wlb_reply_orders_end(const struct wlb_reply *reply, char *reason, size_t size);

/* Whether the reply says that an attempt which was ordered to end has tasks on lost nodes alone. */
bool wlb_reply_survivors_ended(const struct wlb_reply *reply);

#endif
