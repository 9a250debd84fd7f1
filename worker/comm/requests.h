/* Manages the started calls of a communicator. Private to worker/comm. */
#ifndef WORKER_COMM_REQUESTS_H
#define WORKER_COMM_REQUESTS_H

#include "worker/comm/comm.h"

/* Frees all requests; calls still in progress are dropped. */
void wlb_comm_requests_free(struct wlb_comm *comm);

#endif
