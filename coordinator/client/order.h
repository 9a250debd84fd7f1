/* What the coordinator's answer to a report orders. */
#ifndef COORDINATOR_CLIENT_ORDER_H
#define COORDINATOR_CLIENT_ORDER_H

#include <stdbool.h>
#include <stddef.h>

#include "coordinator/client/reply.h"

/* Whether the reply orders the attempt to end; then its reason is in `reason`, cut to the size. */
bool wlb_order_end(const struct wlb_reply *reply, char *reason, size_t size);

#endif
