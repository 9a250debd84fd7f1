/* The calls of a communicator that go on beside computation. Private to worker/comm. */
#ifndef WORKER_COMM_REQUESTS_H
#define WORKER_COMM_REQUESTS_H

#include "worker/comm/comm.h"

/* All requests; those still under way are given up. */
void wlb_comm_requests_free(struct wlb_comm *comm);

#endif
