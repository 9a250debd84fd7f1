/* One request of delivery: the next records of a spool, and what the coordinator said. */
#ifndef WLB_DELIVER_H
#define WLB_DELIVER_H

#include "coordinator/client/client.h"
#include "coordinator/client/spool.h"

enum wlb_delivery {
	WLB_DELIVERY_DONE,    /* nothing is pending */
	WLB_DELIVERY_MORE,    /* some records went over, others are pending: go on */
	WLB_DELIVERY_AWAY,    /* the coordinator or its database is away: later; the message says what failed */
	WLB_DELIVERY_REFUSED, /* it answered and will not have them; the message is its own */
};

enum wlb_delivery wlb_deliver_batch(struct wlb_connection *connection, struct wlb_spool *spool, int timeout_ms,
                                    struct wlb_error *error);

#endif
