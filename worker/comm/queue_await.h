/* A wait of the host for a queue of the device, with a bound. Private to worker/comm. */
#ifndef WORKER_COMM_QUEUE_AWAIT_H
#define WORKER_COMM_QUEUE_AWAIT_H

#include "kernels/ops.h"

/* Returns when all that is on the queue has ended (NULL: the compute queue): 0, or -1 where that takes longer than
 * limit_s since began_s; `what` names it in the message. */
int wlb_queue_await(struct wlb_device *device, struct wlb_queue *queue, double began_s, double limit_s,
                    const char *what, struct wlb_error *error);

#endif
