/* Manages the data calls of a communicator that are started and not awaited yet. Private to worker/comm. */
#ifndef WORKER_COMM_REQUESTS_H
#define WORKER_COMM_REQUESTS_H

#include "worker/comm/comm.h"
#include "worker/comm/transport.h"

/* Starts a data call. wlb_comm_wait (comm.h) awaits it. NULL on failure. */
struct wlb_comm_request *wlb_comm_start(struct wlb_comm *comm, const struct wlb_transport_request *wanted,
                                        struct wlb_error *error);

/* Frees all requests; calls still in progress are dropped. */
void wlb_comm_requests_free(struct wlb_comm *comm);

#endif
